-- Records that have outlived their use go, a bounded number a call.
-- Dedupe records whose window is over, and those that end next where there are more than "cap", if
-- that is not 0.
local function forget_done(k, now, most, cap)
  local old = redis.call('ZRANGE', k.done, '-inf', string.format('%.0f', now), 'BYSCORE', 'LIMIT', 0, most)
  if #old > 0 then zrem(k.done, old) end
  local over = math.min(redis.call('ZCARD', k.done) - cap, most - #old)
  if cap > 0 and over > 0 then
    zrem(k.done, redis.call('ZRANGE', k.done, 0, over - 1))
    tally(k.stats, 'forgotten', over)
  end
end

local function forget_ops(k, before, most)
  local old = redis.call('ZRANGE', k.opsat, '-inf', string.format('%.0f', before), 'BYSCORE', 'LIMIT', 0, most)
  if #old > 0 then
    hdel(k.ops, old)
    zrem(k.opsat, old)
  end
end
