-- claim: takes the lowest scores into the processing set claim:<cid>, under one lease.
-- KEYS  ready locks delayed leases msg retry suspect wake meta stats dead deadinfo reaped claim:<cid>
-- ARGV  cid lane-prefix claim-prefix entries messages per-key lease-micros take-suspect promote-max reap-max
--       max-losses on-death(continue|halt|key) dead-keep-micros dead-max
-- reply {status, fence, now, next due or 0, members, scores, envelopes, retry records}
--       status: empty, served, repeat (this cid was served before), suspect (one message, alone), paused
-- cost  O(messages log N + promote-max + reap-max claims)
-- invariant: what leaves ready or a lane is in the claim and under its lease when the script ends; a key is
--       locked by at most one claim
--@use clock guard tally bulk member record lock bury lane promote reap
local bad = guard({ 'zset', 'hash', 'zset', 'zset', 'hash', 'hash', 'zset', 'zset', 'hash', 'hash', 'zset', 'hash', 'zset', 'zset' })
if bad then return bad end
local k = { ready = KEYS[1], locks = KEYS[2], delayed = KEYS[3], leases = KEYS[4], msg = KEYS[5], retry = KEYS[6],
            suspect = KEYS[7], wake = KEYS[8], meta = KEYS[9], stats = KEYS[10], dead = KEYS[11],
            deadinfo = KEYS[12], reaped = KEYS[13], claim = KEYS[14] }
local cid, prefix, claims = ARGV[1], ARGV[2], ARGV[3]
local entries, most, per_key = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local lease, promote_max = tonumber(ARGV[7]), tonumber(ARGV[9])
local now = clock()
local meta = redis.call('HMGET', k.meta, 'seq', 'paused', 'layout')
bad = newer(meta[3])
if bad then return bad end
local fence = math.max(now, (tonumber(meta[1]) or 0) + 1)

local function reply(status, members, scores)
  local fields, next_due = {}, 0
  for i = 1, #members do fields[i] = split(members[i]) end
  if #members == 0 then
    local due = redis.call('ZRANGE', k.delayed, 0, 0, 'WITHSCORES')
    local over = redis.call('ZRANGE', k.leases, 0, 0, 'WITHSCORES')
    next_due = tonumber(due[2] or over[2] or 0)
    if over[2] then next_due = math.min(next_due, tonumber(over[2])) end
    return { status, 0, now, next_due }
  end
  redis.call('HSET', k.meta, 'seq', string.format('%.0f', fence))
  local envelopes, records = hmget(k.msg, fields), {}
  if redis.call('EXISTS', k.retry) == 1 then records = hmget(k.retry, fields) end
  return { status, fence, now, next_due, members, scores, envelopes, records }
end

-- Frees first, of nothing: with no memory left the writes that follow still pass, so that what is there can
-- be worked off.
redis.call('ZREM', k.leases, '')

if redis.call('EXISTS', k.claim) == 1 then
  local held = redis.call('ZRANGE', k.claim, 0, -1, 'WITHSCORES')
  local members, scores = {}, {}
  for i = 1, #held, 2 do
    members[#members + 1], scores[#scores + 1] = held[i], held[i + 1]
  end
  return reply('repeat', members, scores)
end

reap(k, prefix, claims, now, tonumber(ARGV[10]), tonumber(ARGV[11]), ARGV[12])
promote(k, prefix, now, promote_max)
trim_dead(k, now, tonumber(ARGV[13]), tonumber(ARGV[14]))
if meta[2] then return reply('paused', {}, {}) end

local members, scores, flat, locks = {}, {}, {}, {}

local function take(member, score)
  members[#members + 1], scores[#scores + 1] = member, score
  flat[#flat + 1] = score
  flat[#flat + 1] = member
end

local function hold(status)
  if #members == 0 then return reply('empty', {}, {}) end
  zadd(k.claim, flat)
  redis.call('ZADD', k.leases, string.format('%.0f', now + lease), cid)
  redis.call('ZREM', k.reaped, cid) -- asked again after an outage: a new claim by the name of a dead one
  hset(k.locks, locks)
  if redis.call('ZCARD', k.ready) > 0 or redis.call('ZCARD', k.suspect) > 0 then wake(k) end
  return reply(status, members, scores)
end

local function lock_key(key, claimed, alone)
  locks[#locks + 1] = key
  locks[#locks + 1] = write_lock(cid, claimed, alone)
end

-- One suspect, alone in its claim, so that the next death can be charged to it.
local function take_suspect()
  for _ = 1, 16 do
    local head = redis.call('ZRANGE', k.suspect, 0, 0, 'WITHSCORES')
    if #head == 0 then return false end
    redis.call('ZREM', k.suspect, head[1])
    local member, score = head[1], head[2]
    if is_entry(member) then
      local key = string.sub(member, 2)
      local lock = read_lock(redis.call('HGET', k.locks, key))
      member = nil
      if lock and lock.owner == 'suspect' then
        local first = lane_head(prefix, key)
        if first then
          member, score = first[1], first[2]
          redis.call('ZREM', prefix .. key, member)
          lock_key(key, 1, math.max(lock.alone - 1, 0))
        else
          redis.call('HDEL', k.locks, key)
        end
      end
    end
    if member then
      local field = split(member)
      local rec = read_record(redis.call('HGET', k.retry, field))
      rec.alone = 1
      redis.call('HSET', k.retry, field, write_record(rec))
      take(member, score)
      return true
    end
  end
  return false
end

if ARGV[8] == '1' and take_suspect() then return hold('suspect') end

local popped = redis.call('ZMPOP', 1, k.ready, 'MIN', 'COUNT', entries)
local keys = {}
if popped then
  for i = 1, #popped[2] do
    local member = popped[2][i][1]
    if is_entry(member) then
      keys[#keys + 1] = string.sub(member, 2)
    else
      take(member, popped[2][i][2])
    end
  end
end

-- Each key gets its share of what may still be taken, one at least.
local held = hmget(k.locks, keys)
for i = 1, #keys do
  if not held[i] then
    local share = math.ceil((most - #members) / (#keys - i + 1))
    local got = redis.pcall('ZMPOP', 1, prefix .. keys[i], 'MIN', 'COUNT', math.max(1, math.min(per_key, share)))
    if got and not got.err then
      for j = 1, #got[2] do take(got[2][j][1], got[2][j][2]) end
      lock_key(keys[i], #got[2], 0)
    end
  end
end
return hold('served')
