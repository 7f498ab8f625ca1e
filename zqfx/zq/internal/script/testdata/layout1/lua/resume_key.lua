-- resume_key: lets a halted key go on with the head of its lane.
-- KEYS  locks ready suspect retry wake
-- ARGV  lane-prefix key      reply 1 if it was halted
-- cost  O(log N); invariant: only a halted key changes
--@use guard tally member record lock bury lane
local bad = guard({ 'hash', 'zset', 'zset', 'hash', 'zset' })
if bad then return bad end
local k = { locks = KEYS[1], ready = KEYS[2], suspect = KEYS[3], retry = KEYS[4], wake = KEYS[5] }
local lock = read_lock(redis.call('HGET', k.locks, ARGV[2]))
if not lock or lock.owner ~= 'halted' then return 0 end
if arm(k, ARGV[1], ARGV[2], 0) then wake(k) end
return 1
