-- Returns the members of claims whose lease ran out to their places, with their original scores, and leaves
-- a tombstone. It looks and decides in one script, never from an older reading.
-- A message that was claimed alone is charged with the loss; the others may only have waited in the dead
-- process's buffer, so they are not charged but claimed alone from now on.
local TOMBSTONE_KEEP = 24 * 3600 * 1000000

local function reap_message(k, now, member, score, rec, field, losses)
  if rec.alone == 1 then
    rec.alone, rec.losses = 0, rec.losses + 1
    if rec.losses >= losses then
      bury(k, now, member, field, score, rec, 'lost', 'its worker died or lost its lease')
      return true
    end
    redis.call('HSET', k.retry, field, write_record(rec))
  end
  return false
end

local function reap_claim(k, prefix, claim, cid, now, losses, policy)
  -- A claim that somebody overwrote holds nothing any more; the others that are over must not suffer for it.
  local members = redis.pcall('ZRANGE', claim, 0, -1, 'WITHSCORES')
  if members.err then members = {} end
  local keys, counts, died = {}, {}, {}
  for i = 1, #members, 2 do
    local member, score = members[i], members[i + 1]
    local field, key = split(member)
    local rec = read_record(redis.call('HGET', k.retry, field))
    local dead = reap_message(k, now, member, score, rec, field, losses)
    if key then
      if not counts[key] then keys[#keys + 1], counts[key] = key, 0 end
      counts[key] = counts[key] + 1
      if dead then died[key] = true else to_lane(k, prefix, key, member, score, rec, now, field) end
    elseif not dead then
      redis.call('ZADD', k.suspect, score, member)
    end
  end
  for i = 1, #keys do
    local key = keys[i]
    local lock = read_lock(redis.call('HGET', k.locks, key))
    if not lock or lock.owner == cid then
      local alone = lock and lock.alone or 0
      if died[key] then
        after_death(k, prefix, key, policy, now, alone)
      else
        arm(k, prefix, key, counts[key] + alone)
      end
    end
  end
  redis.call('DEL', claim)
  return #members / 2
end

local function reap(k, prefix, claims, now, most, losses, policy)
  local over = redis.call('ZRANGE', k.leases, '-inf', string.format('%.0f', now), 'BYSCORE', 'LIMIT', 0, most)
  if #over == 0 then return 0 end
  zrem(k.leases, over)
  local count = 0
  for i = 1, #over do
    redis.call('ZADD', k.reaped, string.format('%.0f', now), over[i])
    count = count + reap_claim(k, prefix, claims .. over[i], over[i], now, losses, policy)
  end
  tally(k.stats, 'reaped', #over)
  tally(k.stats, 'rescued', count)
  local old = redis.call('ZRANGE', k.reaped, '-inf', string.format('%.0f', now - TOMBSTONE_KEEP), 'BYSCORE', 'LIMIT', 0, 100)
  if #old > 0 then redis.call('ZREM', k.reaped, unpack(old)) end
  if count > 0 then wake(k) end
  return #over
end
