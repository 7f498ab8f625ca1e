-- checkpoint: applies effects in mid-way, without the ack, while the claim still holds the message.
-- KEYS  claim:<cid> leases ops opsat stats
-- ARGV  token cid member effect-prefix effects, then the effects
-- reply 1 applied (now, or before under this token), -1 lease lost, else 1 + the place of the effect refused
-- cost  that of the effects; invariant: a claim that is over changes nothing
--@use clock guard tally ops effects
local bad = guard({ 'zset', 'zset', 'hash', 'zset', 'hash' })
if bad then return bad end
local k = { claim = KEYS[1], leases = KEYS[2], ops = KEYS[3], opsat = KEYS[4] }
local outcome, late = first_outcome(k, ARGV[1])
if late then return late end
if outcome then return 1 end
local now = clock()
local ends = redis.call('ZSCORE', k.leases, ARGV[2])
if not ends or tonumber(ends) <= now or not redis.call('ZSCORE', k.claim, ARGV[3]) then
  redis.call('ZREM', k.leases, '')
  tally(KEYS[5], 'refused', 1)
  return -1
end
local list = read_effects(6, tonumber(ARGV[5]))
local refused = check_effects(ARGV[4], list)
if refused > 0 then return refused + 1 end
redis.call('ZREM', k.leases, '')
apply_effects(ARGV[4], list)
remember(k, ARGV[1], now, '1')
return 1
