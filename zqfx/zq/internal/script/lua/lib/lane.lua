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

-- A key that cannot go on now: what holds it, and since when. k.now is the time.
local function block(k, key, owner, alone)
  redis.call('HSET', k.locks, key, write_lock(owner, 0, alone))
  redis.call('HSETNX', k.since, key, string.format('%.0f', k.now))
end

local function unblock(k, key)
  redis.call('HDEL', k.locks, key)
  redis.call('HDEL', k.since, key)
end

-- Makes the entry of a key that nobody holds claimable, unless its lane is empty or an operator holds it back.
-- "alone" messages of it are still under suspicion, and a head that has killed a worker is so for good.
local function arm(k, prefix, key, alone)
  if redis.call('HEXISTS', k.holds, key) == 1 then
    block(k, key, 'paused', alone)
    redis.call('ZREM', k.ready, '\0' .. key)
    return false
  end
  local head = lane_head(prefix, key)
  if not head then
    unblock(k, key)
    redis.call('ZREM', k.ready, '\0' .. key)
    return false
  end
  if alone == 0 then
    local rec = read_record(redis.call('HGET', k.retry, (split(head[1]))))
    if rec.losses > 0 then alone = 1 end
  end
  if alone > 0 then
    block(k, key, 'suspect', alone)
    redis.call('ZADD', k.suspect, head[2], '\0' .. key)
    redis.call('ZREM', k.ready, '\0' .. key)
    return true
  end
  unblock(k, key)
  redis.call('ZADD', k.ready, head[2], '\0' .. key)
  return true
end

-- Puts a key to sleep until due; its lane waits behind its head.
local function sleep_key(k, key, due)
  block(k, key, 'delayed', 0)
  redis.call('ZADD', k.delayed, string.format('%.0f', due), '\0' .. key)
end

-- The rest of the lane follows a dead letter: promotion carries it over, a bounded number a call.
local function doom_key(k, key)
  block(k, key, 'dying', 0)
  redis.call('ZADD', k.delayed, string.format('%.0f', k.now), '\0' .. key)
end

-- What becomes of a key when its head has died.
local function after_death(k, prefix, key, policy, alone)
  if policy == 'halt' then return block(k, key, 'halted', 0) end
  if policy == 'key' then return doom_key(k, key) end
  arm(k, prefix, key, alone)
end

local function wake(k)
  redis.call('ZADD', k.wake, 0, 'w')
end
