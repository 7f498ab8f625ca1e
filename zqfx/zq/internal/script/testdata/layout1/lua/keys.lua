-- keys: the ordering keys that somebody holds or that wait for something, with their head.
-- KEYS  locks delayed
-- ARGV  lane-prefix cursor count
-- reply {next cursor, then for each: key, lock, waiting messages, head member or "", due micros or ""}
-- cost  O(count); changes nothing
--@use guard member lock lane
local bad = guard({ 'hash', 'zset' })
if bad then return bad end
local page = redis.call('HSCAN', KEYS[1], ARGV[2], 'COUNT', ARGV[3])
local out, all = { page[1] }, page[2]
for i = 1, #all, 2 do
  local head = lane_head(ARGV[1], all[i])
  local waiting = redis.pcall('ZCARD', ARGV[1] .. all[i])
  out[#out + 1] = all[i]
  out[#out + 1] = all[i + 1]
  out[#out + 1] = type(waiting) == 'table' and 0 or waiting
  out[#out + 1] = head and head[1] or ''
  out[#out + 1] = redis.call('ZSCORE', KEYS[2], '\0' .. all[i]) or ''
end
return out
