-- reserve: gives a message leave to run, a slot, or word when to ask again, for one name.
-- KEYS  pace(hash: tat, the time of the next slot; over, the slot that the last one behind the line can expect)
--       slots(zset: message by the time of its slot)
-- ARGV  message interval tolerance horizon kept longest, all but the first in whole microseconds
-- reply {code, wait in microseconds}: 0 run now, 1 it has a slot, 2 none is free so far ahead
-- cost  O(log N), and a few of the slots that are over; invariant: slots are an interval apart, but for a burst of
--       tolerance/interval more; a message has one slot at most, and it is used once
--
-- GCRA in the form of the virtual scheduling algorithm, ITU-T Recommendation I.371: with TAT the theoretical arrival
-- time, a cell that comes at t conforms if t >= TAT - tolerance, and then TAT = max(t, TAT) + interval. Here a message
-- that does not conform takes the time TAT - tolerance, at which it will, as its slot.
local function kind(key)
  return redis.call('TYPE', key)['ok']
end
local types = { kind(KEYS[1]), kind(KEYS[2]) }
if (types[1] ~= 'none' and types[1] ~= 'hash') or (types[2] ~= 'none' and types[2] ~= 'zset') then
  return redis.error_reply('ZQTYPE a key of the rate limit holds something else')
end
-- A stored time, at most this much; what is none counts as long ago.
local function stored(text, most)
  local n = tonumber(text or '')
  if not n or n ~= n then return 0 end
  return math.min(n, most)
end
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local id, interval, tolerance = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local horizon, kept, longest = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])

local due = tonumber(redis.call('ZSCORE', KEYS[2], id) or '')
if due and due + kept >= now and due <= now + horizon then
  if due > now then return { 1, due - now } end
  redis.call('ZREM', KEYS[2], id)
  return { 0, 0 }
end

-- What stands farther ahead than it can was written by another clock, before a failover, or under another limit.
local held = redis.call('HMGET', KEYS[1], 'tat', 'over')
local tat = math.max(stored(held[1], now + tolerance + horizon + interval), now)
local over = math.max(stored(held[2], now + longest + horizon), 0)
local at = tat - tolerance
local code, wait, last = 0, 0, tat + interval
if at > now + horizon then
  over = math.max(over, at)
  code, wait = 2, math.max(over - now - math.floor(horizon / 2), 1)
  over, last = over + interval, tat
elseif at > now then
  code, wait = 1, at - now
end
local ttl = string.format('%.0f', math.ceil((math.max(last, over, now) - now + kept) / 1000) + 1000)
redis.call('HSET', KEYS[1], 'tat', string.format('%.0f', last), 'over', string.format('%.0f', over))
redis.call('PEXPIRE', KEYS[1], ttl)
if due then redis.call('ZREM', KEYS[2], id) end
if code == 1 then
  redis.call('ZADD', KEYS[2], string.format('%.0f', at), id)
  redis.call('PEXPIRE', KEYS[2], ttl)
end
local gone = redis.call('ZRANGE', KEYS[2], '-inf', string.format('(%.0f', now - kept), 'BYSCORE', 'LIMIT', 0, 4)
if #gone > 0 then redis.call('ZREM', KEYS[2], unpack(gone)) end
return { code, wait }
