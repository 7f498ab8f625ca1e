-- Outcomes of recent calls by their operation token, kept for a while: a client that lost the reply asks
-- again and gets the first outcome, whatever became of the messages since.
local OPS_KEEP = 60 * 1000000

local function first_outcome(k, token)
  return token ~= '' and redis.call('HGET', k.ops, token)
end

-- Each call adds one and drops at most four, so the hash stays as small as a minute of calls.
local function remember(k, token, now, outcome)
  if token == '' then return end
  redis.call('HSET', k.ops, token, outcome)
  redis.call('ZADD', k.opsat, string.format('%.0f', now), token)
  local old = redis.call('ZRANGE', k.opsat, '-inf', string.format('%.0f', now - OPS_KEEP), 'BYSCORE', 'LIMIT', 0, 4)
  if #old > 0 then
    redis.call('HDEL', k.ops, unpack(old))
    redis.call('ZREM', k.opsat, unpack(old))
  end
end
