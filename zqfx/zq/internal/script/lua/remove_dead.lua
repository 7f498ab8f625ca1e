-- remove_dead: drops one dead letter for good: index, story and envelope together.
-- KEYS  dead deadinfo msg stats retry progress cancels
-- ARGV  member      reply 1 if it was there
-- cost  O(log N); invariant: only a dead letter can be removed
--@use guard tally bulk member forget
local bad = guard({ 'zset', 'hash', 'hash', 'hash', 'hash', 'hash', 'hash' })
if bad then return bad end
if redis.call('ZREM', KEYS[1], ARGV[1]) == 0 then return 0 end
local field = split(ARGV[1])
redis.call('HDEL', KEYS[2], field)
forget({ msg = KEYS[3], retry = KEYS[5], progress = KEYS[6], cancels = KEYS[7] }, { field })
if not plain(field) then tally(KEYS[4], 'purged', 1) end
return 1
