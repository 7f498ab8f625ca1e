-- Moves what is due, in due order and at most "most" entries, to where it can be claimed: the new home is
-- written before the old one is cleared.
local function drain_dying(k, prefix, key, now, most)
  local members = redis.pcall('ZRANGE', prefix .. key, 0, most - 1, 'WITHSCORES')
  if members.err then members = {} end
  local gone = {}
  for i = 1, #members, 2 do
    local field = split(members[i])
    local rec = read_record(redis.call('HGET', k.retry, field))
    bury(k, now, members[i], field, members[i + 1], rec, 'key', 'an earlier message of its key died')
    gone[#gone + 1] = members[i]
  end
  if #gone > 0 then zrem(prefix .. key, gone) end
  if #members < most * 2 then
    redis.call('HDEL', k.locks, key)
    redis.call('ZREM', k.delayed, '\0' .. key)
  end
end

local function promote_entry(k, prefix, key, now, most)
  local lock = read_lock(redis.call('HGET', k.locks, key))
  if lock and lock.owner == 'dying' then return drain_dying(k, prefix, key, now, most) end
  if not lock or lock.owner == 'delayed' then arm(k, prefix, key, 0) end
  redis.call('ZREM', k.delayed, '\0' .. key)
end

local function promote_message(k, prefix, member, now)
  local field, key = split(member)
  local rec = read_record(redis.call('HGET', k.retry, field))
  local score = rec.score ~= '' and rec.score or sequence_of(member)
  if key then
    to_lane(k, prefix, key, member, score, rec, now, field)
    if not redis.call('HGET', k.locks, key) then arm(k, prefix, key, 0) end
  elseif rec.losses > 0 then
    redis.call('ZADD', k.suspect, score, member)
  else
    redis.call('ZADD', k.ready, score, member)
  end
  if not worth_keeping(rec) then redis.call('HDEL', k.retry, field) end
  redis.call('ZREM', k.delayed, member)
end

local function promote(k, prefix, now, most)
  local due = redis.call('ZRANGE', k.delayed, '-inf', string.format('%.0f', now), 'BYSCORE', 'LIMIT', 0, most)
  for i = 1, #due do
    if is_entry(due[i]) then
      promote_entry(k, prefix, string.sub(due[i], 2), now, most)
    else
      promote_message(k, prefix, due[i], now)
    end
  end
  return #due
end
