-- begin: marks business keys as running, each for its run; a repeat by the same run extends the mark.
-- KEYS  the business keys, all of one shard; a key may come twice
-- ARGV  for each key: mark-millis run
-- reply the server's time in micros, then for each key: 1 granted where no record was, or a list of y granted, n
--       refused, x not a record; the record that was found; the millis that it still has, if refused
-- cost  O(keys), one GET and one SET or PEXPIRE each; at most 500 keys a call
-- invariant: at most one run holds a key; done is never taken back; a lower fence of the same owner gets nothing.
--       All reads come before the first write, and out of memory refuses the call as a whole, unless all that it
--       does is to extend.
if #KEYS == 0 or #ARGV ~= 2 * #KEYS then return redis.error_reply('ZQIDEM begin takes two values for each key') end
local view, ttl, reply, extends = {}, {}, { now }, {}

local function refuses(rec, run)
  if rec.state == 'd' then return true end
  local owner, fence = identify(run)
  if rec.owner == owner then return rec.fence > fence end
  return rec.state == 'r' or rec.state == 'h'
end

for i = 1, #KEYS do
  local key, millis, run = KEYS[i], ARGV[2 * i - 1], ARGV[2 * i]
  local raw, fault = lookup(view, key)
  if fault then return fault end
  local grant, answer = true, 1
  if raw == true then
    grant, answer = false, { 'x', '', 0 }
  elseif raw and string.sub(raw, STATE, STATE) == 'r' and string.sub(raw, RUN) == run then
    grant, answer = false, { 'y', raw, 0 }
    if not view[key] then extends[key] = millis end
  elseif raw then
    local rec = parse(raw)
    if not rec then
      grant, answer = false, { 'x', '', 0 }
    elseif refuses(rec, run) then
      grant, answer = false, { 'n', raw, tonumber(ttl[key]) or redis.call('PTTL', key) }
    else
      answer = { 'y', raw, 0 }
    end
  end
  if grant then view[key], ttl[key] = render('r', run, ''), millis end
  reply[i + 1] = answer
end
for key, raw in pairs(view) do redis.call('SET', key, raw, 'PX', ttl[key]) end
for key, millis in pairs(extends) do redis.call('PEXPIRE', key, millis) end
return reply
