-- Effects on keys of the queue's own namespace, in one atomic step with an ack or in mid-way.
-- On the wire: name, verb, count of arguments, arguments. Every check of every effect comes before the first
-- write, so the writes cannot fail: types, integers and their range, preconditions. "left" is what earlier
-- effects of the list will have left in the key.
local KIND = {
  set = 'string', incrby = 'string', equals = 'string',
  hset = 'hash', hdel = 'hash', hincrby = 'hash', hequals = 'hash', habsent = 'hash',
  sadd = 'set', srem = 'set', zadd = 'zset', zrem = 'zset',
  rpush = 'list', ltrim = 'list', length = 'list',
}
local LIMIT = 9007199254740991

local function sums(old, add)
  if not old then old = '0' end
  -- Redis takes no leading zeros, and no minus zero.
  if old ~= '0' and not string.match(old, '^-?[1-9]%d*$') or #old > 17 then return false end
  local total = tonumber(old) + tonumber(add)
  return total <= LIMIT and total >= -LIMIT
end

local function check_one(key, verb, args, left)
  local got = redis.call('TYPE', key)
  got = got.ok or got
  if verb == 'absent' then return got == 'none' end
  if verb == 'exists' then return got ~= 'none' end
  local want = KIND[verb]
  if want and got ~= 'none' and got ~= want then return false end
  if want and left.kind and left.kind ~= want then return false end
  if verb == 'equals' then return redis.call('GET', key) == args[1] end
  if verb == 'hequals' then return redis.call('HGET', key, args[1]) == args[2] end
  if verb == 'habsent' then return redis.call('HEXISTS', key, args[1]) == 0 end
  if verb == 'length' then return redis.call('LLEN', key) == tonumber(args[1]) end
  if verb == 'incrby' then return sums(left.value or redis.call('GET', key), args[1]) end
  if verb == 'hincrby' then return sums(left.fields[args[1]] or redis.call('HGET', key, args[1]), args[2]) end
  return want ~= nil or verb == 'del' or verb == 'pexpire'
end

local function apply_one(key, verb, a)
  if verb == 'set' then redis.call('SET', key, a[1])
  elseif verb == 'del' then redis.call('DEL', key)
  elseif verb == 'pexpire' then redis.call('PEXPIRE', key, a[1])
  elseif verb == 'incrby' then redis.call('INCRBY', key, a[1])
  elseif verb == 'hset' then redis.call('HSET', key, unpack(a))
  elseif verb == 'hdel' then redis.call('HDEL', key, unpack(a))
  elseif verb == 'hincrby' then redis.call('HINCRBY', key, a[1], a[2])
  elseif verb == 'sadd' then redis.call('SADD', key, unpack(a))
  elseif verb == 'srem' then redis.call('SREM', key, unpack(a))
  elseif verb == 'zadd' then redis.call('ZADD', key, unpack(a))
  elseif verb == 'zrem' then redis.call('ZREM', key, unpack(a))
  elseif verb == 'rpush' then redis.call('RPUSH', key, unpack(a))
  elseif verb == 'ltrim' then redis.call('LTRIM', key, a[1], a[2])
  end
end

-- Reads n effects from ARGV at "at"; returns them and where they end.
local function read_effects(at, n)
  local list = {}
  for i = 1, n do
    local argc, args = tonumber(ARGV[at + 2]), {}
    for j = 1, argc do args[j] = ARGV[at + 2 + j] end
    list[i] = { name = ARGV[at], verb = ARGV[at + 1], args = args }
    at = at + 3 + argc
  end
  return list, at
end

local function leave(left, verb, args)
  if verb == 'set' then left.value = args[1] end
  if verb == 'hset' then
    for i = 1, #args, 2 do left.fields[args[i]] = args[i + 1] end
  end
  left.kind = left.kind or KIND[verb]
end

-- 0 when all may be applied, else the place of the first that may not.
local function check_effects(prefix, list)
  local left = {}
  for i = 1, #list do
    local name, verb, args = list[i].name, list[i].verb, list[i].args
    left[name] = left[name] or { fields = {} }
    if not check_one(prefix .. name, verb, args, left[name]) then return i end
    leave(left[name], verb, args)
  end
  return 0
end

local function apply_effects(prefix, list)
  for i = 1, #list do apply_one(prefix .. list[i].name, list[i].verb, list[i].args) end
end
