-- heartbeat: extends the leases of all claims of a process in one call.
-- KEYS  leases reaped stats
-- ARGV  lease-micros, then the cids
-- reply the cids whose lease is over: nobody can extend those any more. A claim that was settled to its end
--       meanwhile is not among them
-- cost  O(cids log claims); invariant: a lease that ran out is never extended
--@use clock guard tally bulk
local bad = guard({ 'zset', 'zset', 'hash' })
if bad then return bad end
local now, cids, lost, alive = clock(), {}, {}, {}
for i = 2, #ARGV do cids[i - 1] = ARGV[i] end
local ends = zmscore(KEYS[1], cids)
local deadline = string.format('%.0f', now + tonumber(ARGV[1]))
for i = 1, #cids do
  if ends[i] and tonumber(ends[i]) > now then
    alive[#alive + 1] = deadline
    alive[#alive + 1] = cids[i]
  elseif ends[i] or redis.call('ZSCORE', KEYS[2], cids[i]) then
    lost[#lost + 1] = cids[i]
  end
end
redis.call('ZREM', KEYS[1], '')
zadd(KEYS[1], alive)
if #lost > 0 then tally(KEYS[3], 'refused', #lost) end
return lost
