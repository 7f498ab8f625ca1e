-- All that is kept of messages that are over, by their fields: envelope, record, progress, an operator's mark.
local function forget(k, fields)
  hdel(k.msg, fields)
  if redis.call('EXISTS', k.retry, k.progress, k.cancels) > 0 then
    hdel(k.retry, fields)
    hdel(k.progress, fields)
    hdel(k.cancels, fields)
  end
end
