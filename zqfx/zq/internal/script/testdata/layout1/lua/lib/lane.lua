-- head of a lane as {member, score}, or nil. A lane that somebody overwrote with another type counts as
-- empty: the damage stays with its key, and verify names it. Any other error, such as a missing right, is told:
-- a key that counts as empty is not offered again.
local function lane_head(prefix, key)
  local head = redis.pcall('ZRANGE', prefix .. key, 0, 0, 'WITHSCORES')
  if head.err and not string.find(head.err, 'WRONGTYPE', 1, true) then error(head.err) end
  if head.err or #head == 0 then return nil end
  return head
end

-- Puts a member back into its lane; where the lane is damaged the message becomes a dead letter.
local function to_lane(k, prefix, key, member, score, rec, now, field)
  local done = redis.pcall('ZADD', prefix .. key, score, member)
  if type(done) == 'table' and done.err then
    bury(k, now, member, field, score, rec, 'lane', done.err)
  end
end

-- Makes the entry of a key that nobody holds claimable, unless its lane is empty. "alone" messages of it are
-- still under suspicion, and a head that has killed a worker is so for good.
local function arm(k, prefix, key, alone)
  local head = lane_head(prefix, key)
  if not head then
    redis.call('HDEL', k.locks, key)
    redis.call('ZREM', k.ready, '\0' .. key)
    return false
  end
  if alone == 0 then
    local rec = read_record(redis.call('HGET', k.retry, (split(head[1]))))
    if rec.losses > 0 then alone = 1 end
  end
  if alone > 0 then
    redis.call('HSET', k.locks, key, write_lock('suspect', 0, alone))
    redis.call('ZADD', k.suspect, head[2], '\0' .. key)
    redis.call('ZREM', k.ready, '\0' .. key)
    return true
  end
  redis.call('HDEL', k.locks, key)
  redis.call('ZADD', k.ready, head[2], '\0' .. key)
  return true
end

-- Puts a key to sleep until due; its lane waits behind its head.
local function sleep_key(k, key, due)
  redis.call('HSET', k.locks, key, write_lock('delayed', 0, 0))
  redis.call('ZADD', k.delayed, string.format('%.0f', due), '\0' .. key)
end

local function halt_key(k, key)
  redis.call('HSET', k.locks, key, write_lock('halted', 0, 0))
end

-- The rest of the lane follows a dead letter: promotion carries it over, a bounded number a call.
local function doom_key(k, key, now)
  redis.call('HSET', k.locks, key, write_lock('dying', 0, 0))
  redis.call('ZADD', k.delayed, string.format('%.0f', now), '\0' .. key)
end

-- What becomes of a key when its head has died.
local function after_death(k, prefix, key, policy, now, alone)
  if policy == 'halt' then return halt_key(k, key) end
  if policy == 'key' then return doom_key(k, key, now) end
  arm(k, prefix, key, alone)
end

local function wake(k)
  redis.call('ZADD', k.wake, 0, 'w')
end
