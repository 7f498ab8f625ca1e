-- lock of a key: owner "|" messages of it in the owner's claim "|" how many are still to be claimed alone
-- owner: a claim's id, or delayed (its head waits), suspect (its worker died), halted (an operator resumes),
-- dying (its lane is on the way to the dead letters).
local function read_lock(raw)
  if not raw then return nil end
  local owner, claimed, alone = string.match(raw, '^(.-)|(%d+)|(%d+)$')
  if not owner then return { owner = raw, claimed = 0, alone = 0 } end
  return { owner = owner, claimed = tonumber(claimed), alone = tonumber(alone) }
end

local function write_lock(owner, claimed, alone)
  return owner .. string.format('|%d|%d', claimed, alone)
end
