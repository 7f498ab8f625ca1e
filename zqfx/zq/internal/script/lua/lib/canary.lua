-- A canary has a partition for itself while it lives: meta.canary = label "|" until when. Others get nothing of it
-- then; when it has gone, or goes silent for a lease, they serve it again.
local function read_canary(raw)
  if not raw then return nil, 0 end
  local label, ends = string.match(raw, '^(.*)|(%d+)$')
  return label, tonumber(ends or 0)
end

-- Whether somebody else has the partition, and until when. One that asks with a label takes what is free, and
-- keeps what it has.
local function reserve(k, raw, label, lease)
  local owner, ends = read_canary(raw)
  if owner and owner ~= label and ends > k.now then return ends end
  if label ~= '' and ends < k.now + lease / 2 then
    redis.call('HSET', k.meta, 'canary', label .. string.format('|%.0f', k.now + lease))
  end
end
