-- dead letters: dead holds the member by time, deadinfo its story, msg keeps the envelope.
-- info = reason "\0" attempts "\0" losses "\0" replays "\0" original score "\0" trace "\0" error
-- Writes only; the caller has checked the types and takes the member out of where it was.
local function bury(k, now, member, field, score, rec, reason, err)
  redis.call('ZADD', k.dead, string.format('%.0f', now), member)
  redis.call('HSET', k.deadinfo, field, table.concat({
    reason, string.format('%d', rec.attempts), string.format('%d', rec.losses),
    string.format('%d', rec.replays), score, rec.trace, err }, '\0'))
  redis.call('HDEL', k.retry, field)
  tally(k.stats, 'dead', 1)
end

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
  redis.call('ZREM', k.dead, unpack(old))
  redis.call('HDEL', k.deadinfo, unpack(fields))
  redis.call('HDEL', k.msg, unpack(fields))
  tally(k.stats, 'purged', counted)
end
