-- heartbeat: extends the leases of all claims of a process in one call, and says that the process is there.
-- KEYS  leases reaped stats cancels workers workersat
-- ARGV  lease-micros worker what-it-is, then the cids. An empty worker is not noted
-- reply {cids, fields}: the cids whose lease is over: nobody can extend those any more. A claim that was settled to
--       its end meanwhile is not among them. And the fields of messages of theirs that an operator has cancelled
-- cost  O(cids log claims + cancelled); invariant: a lease that ran out is never extended
--@use clock guard tally bulk worker
local bad = guard({ 'zset', 'zset', 'hash', 'hash', 'hash', 'zset' })
if bad then return bad end
local now, cids, lost, alive = clock(), {}, {}, {}
for i = 4, #ARGV do cids[i - 3] = ARGV[i] end
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
local fields = {}
if #cids > 0 and redis.call('EXISTS', KEYS[4]) == 1 then
  local mine, marked = {}, redis.call('HGETALL', KEYS[4])
  for i = 1, #cids do mine[cids[i]] = true end
  for i = 1, #marked, 2 do
    if mine[marked[i + 1]] then fields[#fields + 1] = marked[i] end
  end
end
redis.call('ZREM', KEYS[1], '')
zadd(KEYS[1], alive)
if #lost > 0 then tally(KEYS[3], 'refused', #lost) end
sign_on(KEYS[5], KEYS[6], ARGV[2], ARGV[3], now, tonumber(ARGV[1]))
return { lost, fields }
