-- Brings n delayed messages, named by their ids in ARGV from "at" on, to their places now: what promotion would do
-- later. One that is not delayed, or unknown, stays as it is. Writes that cannot fail.
local function rouse(k, prefix, at, n, now)
  for i = 0, n - 1 do
    local id = ARGV[at + i]
    local envelope = redis.call('HGET', k.msg, id)
    if envelope then
      local member = member_of(id, envelope)
      if redis.call('ZSCORE', k.delayed, member) then promote_message(k, prefix, member, now) end
    end
  end
end
