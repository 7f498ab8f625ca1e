-- Records that have outlived their use go, a bounded number a call.
local function forget_done(k, now, most)
  local old = redis.call('ZRANGE', k.done, '-inf', string.format('%.0f', now), 'BYSCORE', 'LIMIT', 0, most)
  if #old > 0 then zrem(k.done, old) end
end

local function forget_ops(k, before, most)
  local old = redis.call('ZRANGE', k.opsat, '-inf', string.format('%.0f', before), 'BYSCORE', 'LIMIT', 0, most)
  if #old > 0 then
    hdel(k.ops, old)
    zrem(k.opsat, old)
  end
end
