-- find: one message by id: where it is and what is known of it.
-- KEYS  msg ready delayed locks done retry dead suspect deadinfo
-- ARGV  lane-prefix id
-- reply {} unknown, {"o", end of dedupe window} done, else
--       {letter, member, score in its place, envelope, retry record, dead info, lock of its key}
-- cost  O(1); changes nothing
--@use clock guard member record locate
local bad = guard({ 'hash', 'zset', 'zset', 'hash', 'zset', 'hash', 'zset', 'zset', 'hash' })
if bad then return bad end
local k = { msg = KEYS[1], ready = KEYS[2], delayed = KEYS[3], locks = KEYS[4], done = KEYS[5], retry = KEYS[6],
            dead = KEYS[7], suspect = KEYS[8], deadinfo = KEYS[9] }
local prefix, id = ARGV[1], ARGV[2]
local envelope = redis.call('HGET', k.msg, id)
local member, field = id, '\2' .. id
if envelope then
  member, field = member_of(id, envelope), id
else
  local ends = redis.call('ZSCORE', k.done, id)
  if ends and tonumber(ends) > clock() then return { 'o', ends } end
  local dead = redis.call('ZSCORE', k.dead, id)
  local there = dead or redis.call('ZSCORE', k.ready, id) or redis.call('ZSCORE', k.delayed, id)
    or redis.call('ZSCORE', k.suspect, id)
  if not there then return {} end
end
local letter, score = locate(k, prefix, member)
local _, key = split(member)
return { letter, member, score or '', envelope or '', redis.call('HGET', k.retry, field) or '',
         redis.call('HGET', k.deadinfo, field) or '', key and redis.call('HGET', k.locks, key) or '' }
