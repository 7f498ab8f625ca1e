-- The server's time in microseconds. Read once per script and passed on; no client clock decides anything.
local function clock()
  local t = redis.call('TIME')
  return t[1] * 1000000 + t[2]
end
