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
