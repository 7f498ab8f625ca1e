-- reap: gives back what claims with an expired lease held, carries over what is due, and drops records whose
-- time is over.
-- KEYS  ready locks delayed leases msg retry suspect wake stats dead deadinfo reaped done ops opsat
-- ARGV  lane-prefix claim-prefix reap-max promote-max max-losses on-death(continue|halt|key)
-- reply {claims reaped, entries promoted}
-- cost  O(members of the claims + promote-max); invariant: nobody holds what this returns
--@use clock guard tally bulk member record lock bury lane promote reap ops upkeep
local bad = guard({ 'zset', 'hash', 'zset', 'zset', 'hash', 'hash', 'zset', 'zset', 'hash', 'zset', 'hash', 'zset', 'zset', 'hash', 'zset' })
if bad then return bad end
local k = { ready = KEYS[1], locks = KEYS[2], delayed = KEYS[3], leases = KEYS[4], msg = KEYS[5], retry = KEYS[6],
            suspect = KEYS[7], wake = KEYS[8], stats = KEYS[9], dead = KEYS[10], deadinfo = KEYS[11], reaped = KEYS[12], done = KEYS[13],
            ops = KEYS[14], opsat = KEYS[15] }
local now = clock()
redis.call('ZREM', k.leases, '')
local reaped = reap(k, ARGV[1], ARGV[2], now, tonumber(ARGV[3]), tonumber(ARGV[5]), ARGV[6])
local promoted = promote(k, ARGV[1], now, tonumber(ARGV[4]))
forget_done(k, now, 500)
forget_ops(k, now - OPS_KEEP, 500)
if promoted > 0 then wake(k) end
return { reaped, promoted }
