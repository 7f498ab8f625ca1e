-- A score that was kept as text, if Redis takes it as one, else "other": what somebody wrote there by hand must
-- not stop a script half way.
local function fit_score(text, other)
  local n = tonumber(text)
  -- The embedded Redis' Lua takes 1e+17 for no number.
  if not n and string.match(text or '', '^-?%d+e[+-]%d+$') then n = 0 end
  if n and n == n and not string.find(text, '%s') then return text end
  return other
end

-- retry record: attempts "|" losses "|" alone "|" replays "|" original score "|" trace "|" last error
-- attempts: finished runs that failed. losses: workers that died while they held it alone.
-- alone: 1 while it is claimed alone, so that a reap knows whom to blame. trace: what its last run left for the next.
local function read_record(raw)
  if not raw then return { attempts = 0, losses = 0, alone = 0, replays = 0, score = '', trace = '', err = '' } end
  local a, l, s, r, score, trace, err = string.match(raw, '^(%d+)|(%d+)|(%d+)|(%d+)|([^|]*)|([^|]*)|(.*)$')
  if not a then return { attempts = 0, losses = 0, alone = 0, replays = 0, score = '', trace = '', err = '' } end
  return {
    attempts = tonumber(a), losses = tonumber(l), alone = tonumber(s), replays = tonumber(r),
    score = fit_score(score, ''), trace = trace, err = err,
  }
end

local function write_record(r)
  return string.format('%d|%d|%d|%d|%s|%s|', r.attempts, r.losses, r.alone, r.replays, r.score, r.trace) .. r.err
end

-- A record that says nothing but a score is needed only while the score is not in a set.
local function worth_keeping(r)
  return r.attempts > 0 or r.losses > 0 or r.alone > 0 or r.replays > 0 or r.trace ~= ''
end
