-- verify: walks every index and every envelope, both ways, and names what does not agree.
-- KEYS  ready delayed locks msg retry suspect dead deadinfo leases stats done reaped ops opsat
-- ARGV  lane-prefix claim-prefix most-messages most-problems
-- reply {"checked" messages, problems…} or an error ZQLARGE if there are more messages than allowed
-- cost  O(everything), and Redis answers nobody else meanwhile; changes nothing
--@use guard member record lock lane
local bad = guard({ 'zset', 'zset', 'hash', 'hash', 'hash', 'zset', 'zset', 'hash', 'zset', 'hash', 'zset', 'zset', 'hash', 'zset' })
if bad then return bad end
local k = { ready = KEYS[1], delayed = KEYS[2], locks = KEYS[3], msg = KEYS[4], retry = KEYS[5], suspect = KEYS[6],
            dead = KEYS[7], deadinfo = KEYS[8], leases = KEYS[9], stats = KEYS[10] }
local prefix, claims, most = ARGV[1], ARGV[2], tonumber(ARGV[4])
local total = redis.call('HLEN', k.msg)
if total > tonumber(ARGV[3]) then
  return redis.error_reply('ZQLARGE ' .. string.format('%d', total) .. ' messages, at most ' .. ARGV[3])
end

local problems, found = {}, 0
local function problem(text)
  found = found + 1
  if found <= most then problems[#problems + 1] = text end
end
local function show(m)
  return (string.gsub(m, '%c', function(c) return string.format('\\x%02x', string.byte(c)) end))
end

local place, keys, entries = {}, {}, { ready = {}, delayed = {}, suspect = {} }
local function found_in(where, member)
  if place[member] and is_message(member) then
    problem('message ' .. show(member) .. ' is in ' .. place[member] .. ' and in ' .. where)
  end
  place[member] = where
end

local function walk(where, key)
  local all = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  for i = 1, #all, 2 do
    if is_entry(all[i]) and entries[where] then
      local name = string.sub(all[i], 2)
      entries[where][name], keys[name] = all[i + 1], true
    else
      found_in(where, all[i])
      local _, name = split(all[i])
      if name then
        keys[name] = true
        if where == 'ready' or where == 'suspect' then problem('keyed message ' .. show(all[i]) .. ' lies loose in ' .. where) end
      end
    end
  end
end
walk('ready', k.ready)
walk('delayed', k.delayed)
walk('suspect', k.suspect)
walk('dead', k.dead)

local owners, in_claim = {}, {}
for _, cid in ipairs(redis.call('ZRANGE', k.leases, 0, -1)) do
  owners[cid], in_claim[cid] = true, {}
  local got = redis.call('TYPE', claims .. cid)
  got = got.ok or got
  if got ~= 'zset' then
    problem('lease of claim ' .. show(cid) .. ' without a claim')
  else
    for _, member in ipairs(redis.call('ZRANGE', claims .. cid, 0, -1)) do
      found_in('claim ' .. cid, member)
      local _, name = split(member)
      if name then
        keys[name] = true
        in_claim[cid][name] = (in_claim[cid][name] or 0) + 1
      end
    end
  end
end

local ids = redis.call('HKEYS', k.msg)
local members = {}
for i = 1, #ids do
  members[i] = member_of(ids[i], redis.call('HGET', k.msg, ids[i]))
  local _, name = split(members[i])
  if name then keys[name] = true end
end
local locks = redis.call('HGETALL', k.locks)
local lock_of = {}
for i = 1, #locks, 2 do
  lock_of[locks[i]], keys[locks[i]] = read_lock(locks[i + 1]), true
end

local function walk_key(name)
  local lane, got = prefix .. name, redis.call('TYPE', prefix .. name)
  got = got.ok or got
  local waiting = 0
  if got == 'zset' then
    for _, member in ipairs(redis.call('ZRANGE', lane, 0, -1)) do
      waiting = waiting + 1
      found_in('lane', member)
      local _, own = split(member)
      if own ~= name then problem('lane of key ' .. show(name) .. ' holds ' .. show(member)) end
    end
  elseif got ~= 'none' then
    problem('lane of key ' .. show(name) .. ' is a ' .. got)
  end
  local lock, text = lock_of[name], 'key ' .. show(name)
  if lock then
    if entries.ready[name] then problem(text .. ' is locked and in ready') end
    local owner = lock.owner
    if owner == 'delayed' or owner == 'dying' then
      if not entries.delayed[name] then problem(text .. ' is ' .. owner .. ' but not in delayed') end
    elseif owner == 'suspect' then
      if not entries.suspect[name] then problem(text .. ' is suspect but not in suspect') end
      if waiting == 0 then problem(text .. ' is suspect with an empty lane') end
    elseif owner ~= 'halted' then
      local has = in_claim[owner] and in_claim[owner][name] or 0
      if not owners[owner] then
        problem(text .. ' is locked by claim ' .. show(owner) .. ', which has no lease')
      elseif has ~= lock.claimed then
        problem(text .. ' has ' .. has .. ' messages in its claim, its lock says ' .. lock.claimed)
      end
    end
    if owner ~= 'delayed' and owner ~= 'dying' and entries.delayed[name] then problem(text .. ' is in delayed, its lock says ' .. owner) end
    if owner ~= 'suspect' and entries.suspect[name] then problem(text .. ' is in suspect, its lock says ' .. owner) end
    return
  end
  if entries.delayed[name] or entries.suspect[name] then problem(text .. ' sleeps without a lock') end
  for cid, names in pairs(in_claim) do
    if names[name] then problem(text .. ' has messages in claim ' .. cid .. ' but no lock') end
  end
  if waiting == 0 then
    if entries.ready[name] then problem(text .. ' is in ready with an empty lane') end
  elseif not entries.ready[name] then
    problem(text .. ' has ' .. waiting .. ' messages waiting but is not in ready')
  else
    local head = lane_head(prefix, name)
    if head and tonumber(head[2]) ~= tonumber(entries.ready[name]) then problem(text .. ' has another score in ready than its head') end
  end
end
for name in pairs(keys) do walk_key(name) end

local known = {}
for i = 1, #ids do
  known[ids[i]] = true
  if not place[members[i]] then problem('message ' .. show(ids[i]) .. ' has an envelope but is nowhere') end
end
for member, where in pairs(place) do
  local field = split(member)
  if is_message(member) and not known[field] then problem('message ' .. show(member) .. ' in ' .. where .. ' has no envelope') end
  if where == 'dead' and redis.call('HEXISTS', k.deadinfo, field) == 0 then problem('dead letter ' .. show(member) .. ' has no story') end
end
if redis.call('HLEN', k.deadinfo) ~= redis.call('ZCARD', k.dead) then problem('dead and deadinfo differ in size') end
for _, field in ipairs(redis.call('HKEYS', k.retry)) do
  if not plain(field) and not known[field] then problem('retry record of ' .. show(field) .. ' without a message') end
end
if redis.call('HLEN', KEYS[13]) ~= redis.call('ZCARD', KEYS[14]) then problem('ops and opsat differ in size') end

local c = redis.call('HMGET', k.stats, 'enqueued', 'acked', 'cancelled', 'purged')
local function n(i) return tonumber(c[i] or 0) or 0 end
local sum = n(1) - n(2) - n(3) - n(4)
if sum ~= total then problem(string.format('counters say %d messages are present, there are %d', sum, total)) end
if found > most then problems[#problems + 1] = string.format('and %d more', found - most) end
table.insert(problems, 1, string.format('%d', total))
return problems
