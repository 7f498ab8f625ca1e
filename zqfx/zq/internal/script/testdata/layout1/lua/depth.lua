-- depth: how many messages are where, and the counters.
-- KEYS  ready delayed locks msg suspect dead leases meta done
-- ARGV  claim-prefix lane-prefix
-- reply {now, envelopes, ready, delayed, suspect, dead, running, keys held, keys asleep, keys suspect, keys halted,
--        keys dying, claims, enqueue time of the first that can be claimed or 0, paused, dedupe records}
-- cost  O(locks + claims); changes nothing
--@use clock guard member lock lane
local bad = guard({ 'zset', 'zset', 'hash', 'hash', 'zset', 'zset', 'zset', 'hash', 'zset' })
if bad then return bad end
local states = { delayed = 0, suspect = 0, halted = 0, dying = 0 }
local held = 0
local locks = redis.call('HVALS', KEYS[3])
for i = 1, #locks do
  local owner = read_lock(locks[i]).owner
  if states[owner] then states[owner] = states[owner] + 1 else held = held + 1 end
end
local running, claims = 0, redis.call('ZRANGE', KEYS[7], 0, -1)
for i = 1, #claims do running = running + redis.call('ZCARD', ARGV[1] .. claims[i]) end
local oldest = 0
local first = redis.call('ZRANGE', KEYS[1], 0, 0)[1]
if first and is_entry(first) then
  local head = lane_head(ARGV[2], string.sub(first, 2))
  first = head and head[1]
end
if first then oldest = tonumber(sequence_of(first)) end
return { clock(), redis.call('HLEN', KEYS[4]), redis.call('ZCARD', KEYS[1]), redis.call('ZCARD', KEYS[2]),
         redis.call('ZCARD', KEYS[5]), redis.call('ZCARD', KEYS[6]), running, held, states.delayed, states.suspect,
         states.halted, states.dying, #claims, oldest, redis.call('HEXISTS', KEYS[8], 'paused'), redis.call('ZCARD', KEYS[9]) }
