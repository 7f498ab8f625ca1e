-- The queue's totals. One that somebody overwrote counts no more, and verify says so: it must not stop a script
-- half way. Any other error, such as a missing right, is told.
local function tally(stats, name, n)
  local done = redis.pcall('HINCRBY', stats, name, n)
  if type(done) ~= 'table' or not done.err then return end
  if string.find(done.err, 'not an integer', 1, true) or string.find(done.err, 'overflow', 1, true) then return end
  error(done.err)
end
