-- Outcome of the last call of each session, kept for a while: a client that lost the reply asks again under the
-- same token and gets the first outcome, whatever became of the messages since. A session makes one call after
-- the other, so a call with a lower number than the one kept was stuck on its way while its client went on: it
-- must not come back to life.
-- token = session ":" number, or any text for a single call; ops[session] = number "|" outcome
local OPS_KEEP = 60 * 1000000

local function read_token(token)
  local session, number = string.match(token, '^(.*):(%d+)$')
  return session or token, tonumber(number or 1)
end

-- The outcome of this very call if it was made before, and an error for one that comes too late.
local function first_outcome(k, token)
  if token == '' then return nil end
  local session, number = read_token(token)
  local kept = redis.call('HGET', k.ops, session)
  if not kept then return nil end
  local last, outcome = string.match(kept, '^(%d+)|(.*)$')
  last = tonumber(last or 0)
  if last == number then return outcome end
  if last > number then
    return nil, redis.error_reply('ZQLATE call ' .. string.format('%d', number) .. ' after call ' .. string.format('%d', last))
  end
end

-- Each call drops at most four that are over, so the hash stays as small as the sessions of a minute.
local function remember(k, token, now, outcome)
  if token == '' then return end
  local session, number = read_token(token)
  redis.call('HSET', k.ops, session, string.format('%.0f', number) .. '|' .. outcome)
  redis.call('ZADD', k.opsat, string.format('%.0f', now), session)
  local old = redis.call('ZRANGE', k.opsat, '-inf', string.format('%.0f', now - OPS_KEEP), 'BYSCORE', 'LIMIT', 0, 4)
  if #old > 0 then
    redis.call('HDEL', k.ops, unpack(old))
    redis.call('ZREM', k.opsat, unpack(old))
  end
end
