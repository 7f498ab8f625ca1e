-- replay: sends one dead letter back to work with fresh attempts, its last error kept as history.
-- KEYS  dead deadinfo msg retry locks ready suspect delayed wake meta stats ops opsat
-- ARGV  token lane-prefix member order(original|now)
-- reply the letter of its state: p replayed, else where it is (d delayed, r running, t retry), "" unknown
-- cost  O(log N); invariant: a message that is not a dead letter does not move
--@use clock guard tally member record lock bury lane locate ops
local bad = guard({ 'zset', 'hash', 'hash', 'hash', 'hash', 'zset', 'zset', 'zset', 'zset', 'hash', 'hash', 'hash', 'zset' })
if bad then return bad end
local k = { dead = KEYS[1], deadinfo = KEYS[2], msg = KEYS[3], retry = KEYS[4], locks = KEYS[5], ready = KEYS[6],
            suspect = KEYS[7], delayed = KEYS[8], wake = KEYS[9], meta = KEYS[10], stats = KEYS[11], ops = KEYS[12],
            opsat = KEYS[13] }
local token, prefix, member = ARGV[1], ARGV[2], ARGV[3]
local outcome, late = first_outcome(k, token)
if late then return late end
if outcome then return outcome end
local now = clock()
local field, key = split(member)
if not redis.call('ZSCORE', k.dead, member) then
  local envelope = redis.call('HGET', k.msg, field)
  if not envelope then return '' end
  return 'l' .. locate(k, prefix, member_of(field, envelope))
end
if key then
  bad = lanes_fit(prefix, { key })
  if bad then return bad end
end
local info = redis.call('HGET', k.deadinfo, field) or ''
local reason, _, _, replays, score, trace, err = string.match(info, '^(%Z*)%z(%Z*)%z(%Z*)%z(%Z*)%z(%Z*)%z(%Z*)%z(.*)$')
if not score then reason, replays, trace, err = '', '0', '', '' end
score = fit_score(score, sequence_of(member))
if ARGV[4] == 'now' then
  local seq = math.max(now, (tonumber(redis.call('HGET', k.meta, 'seq') or '0') or 0) + 1)
  score = string.format('%.0f', seq)
  redis.call('HSET', k.meta, 'seq', score)
end
redis.call('HSET', k.retry, field, write_record({ attempts = 0, losses = 0, alone = 0,
  replays = (tonumber(replays) or 0) + 1, score = score, trace = trace, err = reason .. ': ' .. err }))
if key then
  redis.call('ZADD', prefix .. key, score, member)
  if not redis.call('HGET', k.locks, key) then arm(k, prefix, key, 0) end
else
  redis.call('ZADD', k.ready, score, member)
end
redis.call('ZREM', k.dead, member)
redis.call('HDEL', k.deadinfo, field)
tally(k.stats, 'replayed', 1)
remember(k, token, now, 'p')
wake(k)
return 'p'
