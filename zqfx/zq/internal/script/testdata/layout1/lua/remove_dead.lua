-- remove_dead: drops one dead letter for good: index, story and envelope together.
-- KEYS  dead deadinfo msg stats
-- ARGV  member      reply 1 if it was there
-- cost  O(log N); invariant: only a dead letter can be removed
--@use guard tally member
local bad = guard({ 'zset', 'hash', 'hash', 'hash' })
if bad then return bad end
if redis.call('ZREM', KEYS[1], ARGV[1]) == 0 then return 0 end
local field = split(ARGV[1])
redis.call('HDEL', KEYS[2], field)
redis.call('HDEL', KEYS[3], field)
if not plain(field) then tally(KEYS[4], 'purged', 1) end
return 1
