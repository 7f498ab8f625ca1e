-- The queue's totals. One that somebody overwrote counts no more, and verify says so: it must not stop a script
-- half way. Any other error, such as a missing right, is told.
local function count_in(key, field, n)
  local done = redis.pcall('HINCRBY', key, field, n)
  if type(done) ~= 'table' or not done.err then return done end
  for _, harmless in ipairs({ 'not an integer', 'overflow', 'WRONGTYPE' }) do
    if string.find(done.err, harmless, 1, true) then return nil end
  end
  error(done.err)
end

local function tally(stats, name, n)
  count_in(stats, name, n)
end

-- The same, and in the minute's bucket of the history: hist:<hour since 1970>, field = minute and the name's first
-- letter. Redis drops an hour's hash a day after its last new minute.
local HISTORY_KEEP = 25 * 3600 * 1000

local function tally_minute(stats, name, n, now)
  count_in(stats, name, n)
  local minute = math.floor(now / 60000000)
  local hour = string.sub(stats, 1, -6) .. 'hist:' .. string.format('%d', math.floor(minute / 60))
  local first = count_in(hour, string.format('%d', minute % 60) .. string.sub(name, 1, 1), n) == n
  if first then redis.call('PEXPIRE', hour, HISTORY_KEEP) end
end
