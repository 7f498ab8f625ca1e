-- pause: stops or restarts claiming; what is claimed already runs on.
-- KEYS  meta wake      ARGV  1 to pause, 0 to resume      reply 1 if that changed anything
-- cost  O(1); invariant: moves no message
--@use guard
local bad = guard({ 'hash', 'zset' })
if bad then return bad end
local paused = redis.call('HEXISTS', KEYS[1], 'paused')
if ARGV[1] == '1' then
  redis.call('HSET', KEYS[1], 'paused', '1')
  return 1 - paused
end
redis.call('HDEL', KEYS[1], 'paused')
redis.call('ZADD', KEYS[2], 0, 'w')
return paused
