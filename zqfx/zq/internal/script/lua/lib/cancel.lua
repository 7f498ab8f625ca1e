-- Messages that an operator has cancelled while a claim held them: cancels[field] = the claim's id. Whatever their
-- run comes to, but for an ack, they end.
local function is_cancelled(k, field)
  return redis.call('HEXISTS', k.cancels, field) == 1
end

local function end_cancelled(k, field)
  forget(k, { field })
  if not plain(field) then tally(k.stats, 'cancelled', 1) end
end
