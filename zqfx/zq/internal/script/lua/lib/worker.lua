-- Who works on the queue: workers[id] = what it says of itself, workersat[id] = until when it is believed. One that
-- has been silent for an hour is forgotten.
local WORKER_KEEP = 3600 * 1000000

local function sign_on(workers, at, id, what, now, lease)
  if id == '' then return end
  redis.call('HSET', workers, id, what)
  redis.call('ZADD', at, string.format('%.0f', now + lease), id)
  local old = redis.call('ZRANGE', at, '-inf', string.format('%.0f', now - WORKER_KEEP), 'BYSCORE', 'LIMIT', 0, 20)
  if #old > 0 then
    hdel(workers, old)
    zrem(at, old)
  end
end
