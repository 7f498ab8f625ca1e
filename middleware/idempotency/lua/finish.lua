-- finish: records how runs have ended, each by itself.
-- KEYS  the business keys, all of one shard; a key may come twice
-- ARGV  for each key: d done, f failed, h failed and held, c clear; keep-millis run result-or-error
-- reply for each key: 1 recorded, or a list of n refused, x not a record; the record that was found
-- cost  O(keys), one GET and one SET or DEL each, and the bytes of the results; at most 500 keys a call
-- invariant: only the owner with the highest fence ends a run, and done stays done; the same call again changes
--       nothing. A mark that has expired is nobody's: its run still records its end. The first write frees
--       memory, so that out of memory never refuses.
if #KEYS == 0 or #ARGV ~= 4 * #KEYS then return redis.error_reply('ZQIDEM finish takes four values for each key') end
local view, ttl, reply = {}, {}, {}

-- verdict says whether the record is the run's to end, and whether there is anything left to write.
local function verdict(rec, to, run)
  local owner, fence = identify(run)
  if rec.owner ~= owner or rec.fence > fence then return false, false end
  if rec.state == 'd' then return to == 'd', false end
  return true, rec.state ~= to or rec.fence ~= fence
end

for i = 1, #KEYS do
  local key, to, run = KEYS[i], ARGV[4 * i - 3], ARGV[4 * i - 1]
  local raw, fault = lookup(view, key)
  if fault then return fault end
  local write, answer = true, 1
  if raw == true then
    write, answer = false, { 'x', '' }
  elseif not raw then
    write = to ~= 'c'
  elseif string.sub(raw, STATE, STATE) ~= 'r' or string.sub(raw, RUN) ~= run then
    local rec, ours = parse(raw), false
    if rec then ours, write = verdict(rec, to, run) end
    if not rec then
      write, answer = false, { 'x', '' }
    elseif not ours then
      answer = { 'n', raw }
    end
  end
  if write then
    view[key], ttl[key] = to ~= 'c' and render(to, run, ARGV[4 * i]), ARGV[4 * i - 2]
  end
  reply[i] = answer
end
local freed = false
for key, raw in pairs(view) do
  if not freed or not raw then redis.call('DEL', key) end
  freed = true
  if raw then redis.call('SET', key, raw, 'PX', ttl[key]) end
end
return reply
