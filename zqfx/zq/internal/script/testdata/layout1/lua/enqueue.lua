-- enqueue: adds messages, once per id.
-- KEYS  msg ready delayed locks done retry ops opsat wake meta stats dead suspect
-- ARGV  token lane-prefix n, then n times: id key score due envelope
-- reply first sequence "|" one letter a message: a accepted, else the state of the one that is there
--       (p pending, d delayed, r running, t retry, x dead, o done)
-- cost  O(n log N); invariant: an accepted message is in exactly one of ready, its lane, delayed
--@use clock guard tally bulk member record lock bury lane locate place ops
local bad = guard({ 'hash', 'zset', 'zset', 'hash', 'zset', 'hash', 'hash', 'zset', 'zset', 'hash', 'hash', 'zset', 'zset' })
if bad then return bad end
local k = { msg = KEYS[1], ready = KEYS[2], delayed = KEYS[3], locks = KEYS[4], done = KEYS[5], retry = KEYS[6],
            ops = KEYS[7], opsat = KEYS[8], wake = KEYS[9], meta = KEYS[10], stats = KEYS[11], dead = KEYS[12],
            suspect = KEYS[13] }
local token, prefix, n = ARGV[1], ARGV[2], tonumber(ARGV[3])
local outcome, late = first_outcome(k, token)
if late then return late end
if outcome then return outcome end

local now = clock()
local meta = redis.call('HMGET', k.meta, 'seq', 'layout')
bad = newer(meta[2])
if bad then return bad end
local first = math.max(now, (tonumber(meta[1]) or 0) + 1)
local plan
plan, bad = plan_messages(k, prefix, 4, n, now, first)
if bad then return bad end

place_messages(k, prefix, plan, first)
outcome = string.format('%.0f', first) .. '|' .. plan.states
remember(k, token, now, outcome)
if not meta[2] then redis.call('HSET', k.meta, 'layout', LAYOUT) end
if plan.accepted < n then tally(k.stats, 'duplicates', n - plan.accepted) end
return outcome
