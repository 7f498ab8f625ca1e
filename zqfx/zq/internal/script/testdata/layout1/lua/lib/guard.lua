-- A script is not rolled back: a write that meets a key of the wrong type would leave it half done.
-- So every script names the types of its KEYS and refuses before its first write.
local function guard(types)
  for i = 1, #types do
    local got = redis.call('TYPE', KEYS[i])
    got = got.ok or got
    if got ~= 'none' and got ~= types[i] then
      return redis.error_reply('ZQTYPE ' .. KEYS[i] .. ' holds a ' .. got .. ', want a ' .. types[i])
    end
  end
end

-- A lane is named by its ordering key, so it cannot be in KEYS; it is checked on its own.
local function lanes_fit(prefix, names)
  for i = 1, #names do
    local got = redis.call('TYPE', prefix .. names[i])
    got = got.ok or got
    if got ~= 'none' and got ~= 'zset' then
      return redis.error_reply('ZQTYPE ' .. prefix .. names[i] .. ' holds a ' .. got .. ', want a zset')
    end
  end
end

-- The layout this script set was written for. A newer one in the store stops old code before it writes.
local LAYOUT = 1

local function newer(layout)
  if layout and (tonumber(layout) or LAYOUT + 1) > LAYOUT then
    return redis.error_reply('ZQLAYOUT the store has layout ' .. layout)
  end
end
