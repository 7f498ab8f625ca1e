-- Giving up messages of a claim, one way for each outcome. "h" is the call: now, cid, prefix, claim.

-- What the claim holds, by key: read once a call, when first needed. It may name some that have left since.
local function by_key(h)
  if h.keyed then return h.keyed end
  h.keyed = {}
  local held = redis.call('ZRANGE', h.claim, 0, -1, 'WITHSCORES')
  for i = 1, #held, 2 do
    local _, key = split(held[i])
    if key then
      local list = h.keyed[key] or {}
      h.keyed[key] = list
      list[#list + 1] = held[i]
    end
  end
  return h.keyed
end

-- Clears the mark of having been claimed alone; it was for the case of a death only.
local function unmark(k, field, rec)
  if rec.alone == 0 then return end
  rec.alone = 0
  if worth_keeping(rec) then
    redis.call('HSET', k.retry, field, write_record(rec))
  else
    redis.call('HDEL', k.retry, field)
  end
end

local function back_to_lane(k, h, key, member, score)
  local field = split(member)
  local rec = read_record(redis.call('HGET', k.retry, field))
  unmark(k, field, rec)
  redis.call('ZREM', h.claim, member)
  to_lane(k, h.prefix, key, member, score, rec, h.now, field)
end

-- Sends a key's messages from the claim back to their lane.
local function send_back(k, h, key)
  local list = by_key(h)[key] or {}
  for i = 1, #list do
    local score = redis.call('ZSCORE', h.claim, list[i])
    if score then back_to_lane(k, h, key, list[i], score) end
  end
end

-- What the key's lock says, if this claim holds it. A lock that was lost counts as this claim's.
local function holding(k, h, key)
  local lock = read_lock(redis.call('HGET', k.locks, key))
  if not lock then return { owner = h.cid, claimed = 0, alone = 0 } end
  if lock.owner == h.cid then return lock end
end

-- n messages of the key have left the claim for good.
local function let_go(k, h, key, n)
  local lock = holding(k, h, key)
  if not lock then return end
  if lock.claimed > n then
    redis.call('HSET', k.locks, key, write_lock(h.cid, lock.claimed - n, lock.alone))
  else
    arm(k, h.prefix, key, lock.alone)
  end
end

-- A message goes back: at once or after a delay, with or without its key waiting for it.
local function give_back(k, h, member, score, rec, delay, block)
  local field, key = split(member)
  rec.alone, rec.score = 0, score
  if worth_keeping(rec) or delay > 0 then
    redis.call('HSET', k.retry, field, write_record(rec))
  else
    redis.call('HDEL', k.retry, field)
  end
  if key and block then
    local lock = holding(k, h, key)
    if lock and lock.claimed == 1 then
      back_to_lane(k, h, key, member, score)
    else
      send_back(k, h, key)
    end
    if not lock then return end
    if delay > 0 then return sleep_key(k, key, h.now + delay) end
    return arm(k, h.prefix, key, lock.alone)
  end
  redis.call('ZREM', h.claim, member)
  if delay > 0 then
    redis.call('ZADD', k.delayed, string.format('%.0f', h.now + delay), member)
  elseif key then
    to_lane(k, h.prefix, key, member, score, rec, h.now, field)
  elseif rec.losses > 0 then
    redis.call('ZADD', k.suspect, score, member)
  else
    redis.call('ZADD', k.ready, score, member)
  end
  if key then let_go(k, h, key, 1) end
end

-- A message dies; its key goes on, halts, or follows it.
local function lay_down(k, h, member, score, rec, reason, err, policy)
  local field, key = split(member)
  redis.call('ZREM', h.claim, member)
  rec.alone = 0
  bury(k, h.now, member, field, score, rec, reason, err)
  if not key then return end
  if policy == 'continue' then return let_go(k, h, key, 1) end
  local lock = holding(k, h, key)
  send_back(k, h, key)
  if lock then after_death(k, h.prefix, key, policy, h.now, lock.alone) end
end

-- All that the claim still holds goes back, uncharged.
local function give_up(k, h)
  local held = redis.call('ZRANGE', h.claim, 0, -1, 'WITHSCORES')
  local keys, seen = {}, {}
  for i = 1, #held, 2 do
    local field, key = split(held[i])
    if key then
      back_to_lane(k, h, key, held[i], held[i + 1])
      if not seen[key] then seen[key], keys[#keys + 1] = true, key end
    else
      local rec = read_record(redis.call('HGET', k.retry, field))
      give_back(k, h, held[i], held[i + 1], rec, 0, false)
    end
  end
  for i = 1, #keys do
    local lock = holding(k, h, keys[i])
    if lock then arm(k, h.prefix, keys[i], lock.alone) end
  end
  return #held / 2
end
