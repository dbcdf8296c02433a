-- A throttle.FixedWindow. The state is 8 bytes of the window's start and 8 of its count.
--
-- Parameters: the window, the limit.

local window, limit = unpack('>I6I6', params)
local state, start, count = call('GET', key) or '', 0, 0
if #state == 16 then start, count = unpack('>I8I8', state) end
if now >= start + window + 1000 then state, start, count = '', 0, 0 end

local function startOf(at) return at - at % window end

-- The window at the moment that counts, and that moment.
local function current()
  local clock = math.max(now, start)
  if clock - start >= window then return startOf(clock), 0, clock end
  return start, count, clock
end

if step == 'reset' then return call('DEL', key) .. stamp .. state end

local done = 0
if step == 'take' then
  start, count = current()
  if count < limit then count, done = count + 1, 1 end
elseif step == 'release' then
  if startOf(unpack('>I6', admissions)) == start and count > 0 then count, done = count - 1, 1 end
elseif step == 'record' then
  for i = 1, #admissions, 14 do
    local at = unpack('>I6', admissions, i)
    local currentStart, currentCount, clock = current()
    if startOf(math.min(at, clock)) == currentStart and currentCount < 2 ^ 52 then
      start, count, done = currentStart, currentCount + 1, 1
    end
  end
end
if done == 1 then
  call('SET', key, pack('>I8I8', start, count), 'PXAT', start + window + 1000)
end
return done .. stamp .. state
