-- Drops dead letters that are too old or too many, oldest first, a few a call: index, story and envelope
-- together, so that nothing is orphaned.
local function trim_dead(k, now, keep, most)
  local old = redis.call('ZRANGE', k.dead, '-inf', string.format('(%.0f', now - keep), 'BYSCORE', 'LIMIT', 0, 20)
  if #old == 0 then
    local over = redis.call('ZCARD', k.dead) - most
    if over <= 0 then return end
    old = redis.call('ZRANGE', k.dead, 0, math.min(over, 20) - 1)
  end
  local fields, counted = {}, 0
  for i = 1, #old do
    fields[i] = split(old[i])
    if not plain(fields[i]) then counted = counted + 1 end
  end
  zrem(k.dead, old)
  hdel(k.deadinfo, fields)
  forget(k, fields)
  tally(k.stats, 'purged', counted)
end
