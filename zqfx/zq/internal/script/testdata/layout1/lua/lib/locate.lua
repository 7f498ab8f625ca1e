-- Where a stored message is, by the member that its envelope names: one letter and its score.
-- p pending, d delayed, r running, t waiting for a retry, x dead
local function locate(k, prefix, member)
  local field, key = split(member)
  local score = redis.call('ZSCORE', k.dead, member)
  if score then return 'x', score end
  score = redis.call('ZSCORE', k.suspect, member)
  if score then return 't', score end
  local failed = read_record(redis.call('HGET', k.retry, field)).attempts > 0
  score = redis.call('ZSCORE', k.delayed, member)
  if score then return failed and 't' or 'd', score end
  if key then
    local found = redis.pcall('ZSCORE', prefix .. key, member)
    score = type(found) ~= 'table' and found
  else
    score = redis.call('ZSCORE', k.ready, member)
  end
  if score then return failed and 't' or 'p', score end
  return 'r', false
end
