-- member   = "\1" 14 hex digits of the sequence ":" id [ "\0" key ]
-- key entry = "\0" key      anything else = a plain member that somebody put there by ZADD
local function is_message(m)
  return string.byte(m, 1) == 1 and string.byte(m, 16) == 58 and #m > 16
end

local function is_entry(m)
  return string.byte(m, 1) == 0 and #m > 1
end

local function make_member(hex, id, key)
  if key == '' then return '\1' .. hex .. ':' .. id end
  return '\1' .. hex .. ':' .. id .. '\0' .. key
end

-- The field of a member in msg, retry and deadinfo, and its key or nil. Ids have no control characters,
-- so the field of a plain member can never be that of a message.
local function split(m)
  if not is_message(m) then return '\2' .. m, nil end
  local nul = string.find(m, '\0', 17, true)
  if not nul then return string.sub(m, 17), nil end
  return string.sub(m, 17, nul - 1), string.sub(m, nul + 1)
end

local function plain(field)
  return string.byte(field, 1) == 2
end

-- The default score of a message is its sequence.
local function sequence_of(m)
  if not is_message(m) then return '0' end
  return string.format('%.0f', tonumber(string.sub(m, 2, 15), 16) or 0)
end

-- A stored envelope starts with what the enqueue script put there: field 1 the sequence as 14 hex digits,
-- field 2 the key. The rest is the client's and is never opened here.
local function head_of_envelope(hex, key)
  if key == '' then return '\10\14' .. hex end
  local n = #key
  if n < 128 then return '\10\14' .. hex .. '\18' .. string.char(n) .. key end
  return '\10\14' .. hex .. '\18' .. string.char(128 + n % 128, math.floor(n / 128)) .. key
end

local function member_of(id, envelope)
  local hex = string.sub(envelope, 3, 16)
  if string.byte(envelope, 17) ~= 18 then return make_member(hex, id, '') end
  local n, at = string.byte(envelope, 18) or 0, 19
  if n >= 128 then
    n, at = n - 128 + (string.byte(envelope, 19) or 0) * 128, 20
  end
  return make_member(hex, id, string.sub(envelope, at, at + n - 1))
end
