-- Variadic commands in chunks: unpack fails somewhere above 5,000 values, and command names stay literal
-- because hosted proxies refuse computed ones.
local CHUNK = 1000

local function hmget(key, fields)
  local out = {}
  for i = 1, #fields, CHUNK do
    local part = redis.call('HMGET', key, unpack(fields, i, math.min(i + CHUNK - 1, #fields)))
    for j = 1, #part do out[i + j - 1] = part[j] end
  end
  return out
end

local function zmscore(key, members)
  local out = {}
  for i = 1, #members, CHUNK do
    local part = redis.call('ZMSCORE', key, unpack(members, i, math.min(i + CHUNK - 1, #members)))
    for j = 1, #part do out[i + j - 1] = part[j] end
  end
  return out
end

local function zrem(key, members)
  for i = 1, #members, CHUNK do
    redis.call('ZREM', key, unpack(members, i, math.min(i + CHUNK - 1, #members)))
  end
end

local function hdel(key, fields)
  for i = 1, #fields, CHUNK do
    redis.call('HDEL', key, unpack(fields, i, math.min(i + CHUNK - 1, #fields)))
  end
end

-- pairs of score and member, flat
local function zadd(key, flat)
  for i = 1, #flat, CHUNK do
    redis.call('ZADD', key, unpack(flat, i, math.min(i + CHUNK - 1, #flat)))
  end
end

-- pairs of field and value, flat
local function hset(key, flat)
  for i = 1, #flat, CHUNK do
    redis.call('HSET', key, unpack(flat, i, math.min(i + CHUNK - 1, #flat)))
  end
end
