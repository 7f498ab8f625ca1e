-- resume_key: lets a halted or paused key go on with the head of its lane.
-- KEYS  locks ready suspect retry wake holds since
-- ARGV  lane-prefix key      reply 1 if it was halted or paused
-- cost  O(log N); invariant: no other key changes
--@use clock guard tally member record lock bury lane
local bad = guard({ 'hash', 'zset', 'zset', 'hash', 'zset', 'hash', 'hash' })
if bad then return bad end
local k = { locks = KEYS[1], ready = KEYS[2], suspect = KEYS[3], retry = KEYS[4], wake = KEYS[5], holds = KEYS[6],
            since = KEYS[7], now = clock() }
local lock = read_lock(redis.call('HGET', k.locks, ARGV[2]))
local held = redis.call('HDEL', k.holds, ARGV[2])
if not lock or (lock.owner ~= 'halted' and lock.owner ~= 'paused') then return held end
if arm(k, ARGV[1], ARGV[2], lock.alone) then wake(k) end
return 1
