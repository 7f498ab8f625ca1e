-- New messages, five arguments each: id, key, score ("" = the sequence), due ("", "+" micros from now or
-- "=" micros since 1970), envelope. plan_messages only reads; place_messages only makes writes that cannot fail.
local FIELDS = 5

local function due_of(spec, now)
  local how = string.byte(spec, 1)
  if how == 43 then return now + tonumber(string.sub(spec, 2)) end
  if how == 61 then return tonumber(string.sub(spec, 2)) end
  return now
end

-- States of those that are there already; the same id twice in one call counts as there.
local function known(k, prefix, ids, now)
  local envelopes, ends = hmget(k.msg, ids), zmscore(k.done, ids)
  local states = {}
  for i = 1, #ids do
    if envelopes[i] then
      states[i] = locate(k, prefix, member_of(ids[i], envelopes[i]))
    elseif ends[i] and tonumber(ends[i]) > now then
      states[i] = 'o'
    end
  end
  return states
end

local function plan_messages(k, prefix, at, n, now, first)
  local plan = { ids = {}, states = {}, keys = {}, lanes = {}, ready = {}, delayed = {}, records = {},
                 envelopes = {}, stale = {}, accepted = 0, locks = {} }
  for i = 1, n do plan.ids[i] = ARGV[at + (i - 1) * FIELDS] end
  local states, seen = known(k, prefix, plan.ids, now), {}
  for i = 1, n do
    local id, p = plan.ids[i], at + (i - 1) * FIELDS
    if seen[id] then
      states[i] = seen[id]
    elseif not states[i] then
      local key, score, due = ARGV[p + 1], ARGV[p + 2], due_of(ARGV[p + 3], now)
      local seq = first + plan.accepted
      local hex = string.format('%014x', seq)
      local member = make_member(hex, id, key)
      local e = plan.envelopes
      e[#e + 1] = id
      e[#e + 1] = head_of_envelope(hex, key) .. ARGV[p + 4]
      plan.accepted = plan.accepted + 1
      states[i], seen[id] = 'a', 'p'
      if due > now then
        seen[id] = 'd'
        local d = plan.delayed
        d[#d + 1] = string.format('%.0f', due)
        d[#d + 1] = member
        if score ~= '' then
          local r = plan.records
          r[#r + 1] = id
          r[#r + 1] = write_record({ attempts = 0, losses = 0, alone = 0, replays = 0, score = score, trace = '', err = '' })
        end
      else
        if score == '' then score = string.format('%.0f', seq) end
        local flat = plan.ready
        if key ~= '' then
          flat = plan.lanes[key]
          if not flat then
            flat = { least = tonumber(score), text = score }
            plan.lanes[key] = flat
            plan.keys[#plan.keys + 1] = key
          elseif tonumber(score) < flat.least then
            flat.least, flat.text = tonumber(score), score
          end
        end
        flat[#flat + 1] = score
        flat[#flat + 1] = member
      end
    end
  end
  plan.states = table.concat(states)
  local bad = lanes_fit(prefix, plan.keys)
  if bad then return plan, bad end
  plan.locks = hmget(k.locks, plan.keys)
  return plan
end

-- The envelopes come first: with no memory left that write is refused, before anything else was touched.
local function place_messages(k, prefix, plan, first)
  if plan.accepted == 0 then return end
  hset(k.msg, plan.envelopes)
  redis.call('HSET', k.meta, 'seq', string.format('%.0f', first + plan.accepted - 1))
  tally(k.stats, 'enqueued', plan.accepted)
  local claimable = #plan.ready > 0 or #plan.delayed > 0
  hset(k.retry, plan.records)
  zadd(k.delayed, plan.delayed)
  zadd(k.ready, plan.ready)
  for i = 1, #plan.keys do
    local key = plan.keys[i]
    local flat = plan.lanes[key]
    zadd(prefix .. key, flat)
    if not plan.locks[i] then
      redis.call('ZADD', k.ready, 'LT', flat.text, '\0' .. key)
      claimable = true
    end
  end
  if claimable then wake(k) end
end
