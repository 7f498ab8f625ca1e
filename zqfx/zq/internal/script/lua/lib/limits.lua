-- Limits that are kept with the queue, in meta: rate (messages), per (microseconds) and burst (messages), with tat,
-- the theoretical arrival time of the generic cell rate algorithm; inflight (messages in claims).
local function limited(k)
  return redis.call('HEXISTS', k.meta, 'inflight') == 1
end

local function number(v)
  local n = tonumber(v or '')
  if n and n > 0 and n < math.huge then return n end
end

-- How many messages the rate lets through now, and when the next one may if none.
local function by_rate(now, rate, per, burst, tat)
  rate, per = number(rate), number(per)
  if not rate or not per then return nil end
  local gap = per / rate
  burst, tat = number(burst) or 1, math.max(number(tat) or 0, now)
  local room = math.floor((now + burst * gap - tat) / gap)
  return math.max(room, 0), math.ceil(tat + gap - burst * gap), tat, gap
end

local function in_claims(k, claims)
  local n, all = 0, redis.call('ZRANGE', k.leases, 0, -1)
  for i = 1, #all do
    local held = redis.pcall('ZCARD', claims .. all[i])
    if type(held) == 'number' then n = n + held end
  end
  return n
end
