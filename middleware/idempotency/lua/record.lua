-- record: how one business key is stored, and the server's time. Stands in front of each script.
-- A record is a string: "1 <state> <since> <run>[<result or error>]". The 1 is the version of this format; states
-- are r running, d done, f failed, h failed and held for its message; since is in micros, of 16 digits until the
-- year 2286; a run is "<fence> <bytes of owner>\n<owner>". Scripts get the run as they store it, so that the common
-- case, a mark of this very run, is one comparison.
local time = redis.call('TIME')
local now = string.format('%016.0f', tonumber(time[1]) * 1000000 + tonumber(time[2]))

-- parse gives nil for what is not a record of this version.
local function parse(raw)
  local state, since, fence, size = string.match(raw, '^1 ([rdfh]) (%d+) (%d+) (%d+)\n')
  if not state then return nil end
  local first = string.find(raw, '\n', 1, true) + 1
  local last = first + tonumber(size) - 1
  if last > #raw or #since ~= 16 then return nil end
  return { state = state, fence = tonumber(fence), owner = string.sub(raw, first, last) }
end

-- identify reads a run.
local function identify(run)
  local first = string.find(run, '\n', 1, true) + 1
  return string.sub(run, first), tonumber(string.match(run, '^%d+'))
end

-- The places of a record's parts.
local STATE, RUN = 3, 22

local function render(state, run, rest) return '1 ' .. state .. ' ' .. now .. ' ' .. run .. rest end

-- lookup reads a key, or what this call is going to write there. The second value is an error to stop with; the
-- first is false where nothing is, and true for what is no string.
local function lookup(view, key)
  local raw = view[key]
  if raw ~= nil then return raw end
  raw = redis.pcall('GET', key)
  if type(raw) ~= 'table' then return raw end
  if string.find(raw.err, 'WRONGTYPE', 1, true) then return true end
  return nil, raw
end
