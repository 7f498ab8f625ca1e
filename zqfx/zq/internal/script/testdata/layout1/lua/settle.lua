-- settle: records the outcomes of messages of one claim, each only if the claim still holds it.
-- KEYS  claim:<cid> leases msg retry done locks ready delayed suspect dead deadinfo reaped wake meta stats
-- ARGV  cid lane-prefix effect-prefix give-up(0|1) dead-keep-micros dead-max acks windowed others,
--       then acks: member; windowed: member dedupe-micros; others: member verb argc args…
--         ack     dedupe-micros effects follow-ups rouse, then the effects, the follow-ups (see place), the ids to
--                 bring forward
--         retry   delay-micros charge(0|1) block(0|1) error trace
--         dead    reason error on-death(continue|halt|key) trace
-- reply {count applied, then pairs of place and code for the rest}
--       code 0 settled before (a repeat), -1 lease lost, else 1 + the place of the effect that may not be applied
--       (one more than there are: a follow-up cannot be placed)
-- cost  plain acks a few variadic calls; O(claim) for a keyed retry; invariant: without membership no change
--@use clock guard tally bulk member record lock bury lane locate place effects unhold promote rouse upkeep
local bad = guard({ 'zset', 'zset', 'hash', 'hash', 'zset', 'hash', 'zset', 'zset', 'zset', 'zset', 'hash', 'zset', 'zset', 'hash', 'hash' })
if bad then return bad end
local k = { claim = KEYS[1], leases = KEYS[2], msg = KEYS[3], retry = KEYS[4], done = KEYS[5], locks = KEYS[6],
            ready = KEYS[7], delayed = KEYS[8], suspect = KEYS[9], dead = KEYS[10], deadinfo = KEYS[11],
            reaped = KEYS[12], wake = KEYS[13], meta = KEYS[14], stats = KEYS[15] }
local h = { cid = ARGV[1], prefix = ARGV[2], claim = KEYS[1], now = clock() }
local effect_prefix, abandon = ARGV[3], ARGV[4] == '1'
local acks, windowed, others = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])

local members, at = {}, 9
local windows, verbs = {}, {}
for i = 1, acks do members[i] = ARGV[at + i] end
at = at + acks
for i = 1, windowed do
  members[acks + i], windows[acks + i] = ARGV[at + 1], tonumber(ARGV[at + 2])
  at = at + 2
end
for i = acks + windowed + 1, acks + windowed + others do
  members[i], verbs[i] = ARGV[at + 1], at + 2
  at = at + 3 + tonumber(ARGV[at + 3])
end

-- Nothing of a claim whose lease is over may change any more; a claim that is gone without a tombstone was
-- settled to its end, so this is a repeat.
local ends = redis.call('ZSCORE', k.leases, h.cid)
local verdict = 0
if ends then
  if tonumber(ends) <= h.now then verdict = -1 end
elseif redis.call('ZSCORE', k.reaped, h.cid) then
  verdict = -1
end
local alive = ends and verdict == 0
local scores = {}
if alive then scores = zmscore(k.claim, members) end

local applied, rest = 0, {}
local function note(i, code)
  if code == 1 then
    applied = applied + 1
  else
    rest[#rest + 1], rest[#rest + 2] = i, code
  end
end

-- Acks without anything attached: variadic throughout.
local gone, fields, plains, kept, keys, count, twice = {}, {}, 0, {}, {}, {}, {}
for i = 1, acks + windowed do
  local member = members[i]
  if scores[i] and not twice[member] then
    twice[member] = true
    local field, key = split(member)
    gone[#gone + 1], fields[#fields + 1] = member, field
    if plain(field) then plains = plains + 1 end
    if key then
      if not count[key] then keys[#keys + 1], count[key] = key, 0 end
      count[key] = count[key] + 1
    end
    if windows[i] and not plain(field) then
      kept[#kept + 1] = string.format('%.0f', h.now + windows[i])
      kept[#kept + 1] = field
    end
    note(i, 1)
  else
    note(i, verdict)
  end
end
local held = hmget(k.locks, keys)

-- The first write frees, of nothing: see claim. Not of the claim, where '' may be a plain member.
redis.call('ZREM', k.leases, '')
if #gone > 0 then
  zrem(k.claim, gone)
  hdel(k.msg, fields)
  if redis.call('EXISTS', k.retry) == 1 then hdel(k.retry, fields) end
  zadd(k.done, kept)
  tally(k.stats, 'acked', #gone - plains)
  if plains > 0 then tally(k.stats, 'acked_plain', plains) end
end
local still, freed, armed, claimable = {}, {}, {}, false
for i = 1, #keys do
  local lock = read_lock(held[i])
  if lock and lock.owner == h.cid then
    if lock.claimed > count[keys[i]] then
      still[#still + 1] = keys[i]
      still[#still + 1] = write_lock(h.cid, lock.claimed - count[keys[i]], lock.alone)
    elseif lock.alone > 0 then
      claimable = arm(k, h.prefix, keys[i], lock.alone) or claimable
    else
      freed[#freed + 1] = keys[i]
    end
  end
end
hset(k.locks, still)
if #freed > 0 then
  -- A head that has failed may have killed a worker: only then is each looked at on its own.
  local careful = redis.call('EXISTS', k.retry) == 1
  hdel(k.locks, freed)
  for i = 1, #freed do
    if careful then
      claimable = arm(k, h.prefix, freed[i], 0) or claimable
    else
      local head = lane_head(h.prefix, freed[i])
      if head then
        armed[#armed + 1] = head[2]
        armed[#armed + 1] = '\0' .. freed[i]
      end
    end
  end
  zadd(k.ready, armed)
end

-- Everything else one by one, each atomic on its own: checks first, then writes that cannot fail.
local function ack_with(member, p)
  local window, effects, follow = tonumber(ARGV[p]), tonumber(ARGV[p + 1]), tonumber(ARGV[p + 2])
  local forward = tonumber(ARGV[p + 3])
  local list, from = read_effects(p + 4, effects)
  local refused = check_effects(effect_prefix, list)
  if refused > 0 then return refused end
  local first, plan, unfit
  if follow > 0 then
    first = math.max(h.now, (tonumber(redis.call('HGET', k.meta, 'seq') or '0') or 0) + 1)
    plan, unfit = plan_messages(k, h.prefix, from, follow, h.now, first)
    if unfit then return effects + 1 end
  end
  local field, key = split(member)
  redis.call('ZREM', k.claim, member)
  apply_effects(effect_prefix, list)
  if plan then place_messages(k, h.prefix, plan, first) end
  if forward > 0 then rouse(k, h.prefix, from + follow * FIELDS, forward, h.now) end
  redis.call('HDEL', k.msg, field)
  redis.call('HDEL', k.retry, field)
  if window > 0 and not plain(field) then redis.call('ZADD', k.done, string.format('%.0f', h.now + window), field) end
  tally(k.stats, plain(field) and 'acked_plain' or 'acked', 1)
  if key then let_go(k, h, key, 1) end
  return 0
end

local function give(member, score, p)
  local rec = read_record(redis.call('HGET', k.retry, (split(member))))
  if ARGV[p + 4] ~= '' then rec.trace = ARGV[p + 4] end
  if ARGV[p + 1] == '1' then
    rec.attempts, rec.err = rec.attempts + 1, ARGV[p + 3]
    tally(k.stats, 'failed', 1)
  end
  give_back(k, h, member, score, rec, tonumber(ARGV[p]), ARGV[p + 2] == '1')
end

local function die(member, score, p)
  local rec = read_record(redis.call('HGET', k.retry, (split(member))))
  if ARGV[p + 3] ~= '' then rec.trace = ARGV[p + 3] end
  rec.attempts = rec.attempts + 1
  tally(k.stats, 'failed', 1)
  lay_down(k, h, member, score, rec, ARGV[p], ARGV[p + 1], ARGV[p + 2])
end

for i = acks + windowed + 1, #members do
  local member, p = members[i], verbs[i] + 2
  local verb = ARGV[verbs[i]]
  local score = scores[i] and redis.call('ZSCORE', k.claim, member)
  if not score then
    note(i, scores[i] and 1 or verdict)
  elseif verb == 'ack' then
    local refused = ack_with(member, p)
    note(i, refused == 0 and 1 or refused + 1)
  else
    if verb == 'retry' then give(member, score, p) else die(member, score, p) end
    note(i, 1)
  end
end

if alive then
  if abandon then give_up(k, h) end
  if redis.call('EXISTS', k.claim) == 0 then redis.call('ZREM', k.leases, h.cid) end
  if claimable or #armed > 0 or others > 0 or abandon then wake(k) end
end
if #kept > 0 then forget_done(k, h.now, #kept + 20) end
if others > 0 then trim_dead(k, h.now, tonumber(ARGV[5]), tonumber(ARGV[6])) end
if verdict == -1 and #members > 0 then tally(k.stats, 'refused', #members) end
table.insert(rest, 1, applied)
return rest
