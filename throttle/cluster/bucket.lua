-- A throttle.TokenBucket or LeakyBucket. The state is 8 bytes of the latest moment and 8 of the
-- level then. A send is as many units as the window has milliseconds, and limit of them drain
-- in each.
--
-- Parameters: the window, the limit, how many sends there is room for, and 1 for a LeakyBucket,
-- which releases only the newest send.

local window, limit, room, queue = unpack('>I6I6I6I6', params)
local full = room * window
local state, at, level = call('GET', key) or '', 0, 0
if #state == 16 then at, level = unpack('>I8I8', state) end
local function expires() return at + math.ceil(math.max(level, window) / limit) + 1000 end
if now >= expires() then state, at, level = '', 0, 0 end

-- What is left of a level after some time.
local function drained(from, passed)
  if passed >= math.ceil(from / limit) then return 0 end
  return from - passed * limit
end

local function drainTo(moment)
  if moment > at then at, level = moment, drained(level, moment - at) end
end

if step == 'reset' then return call('DEL', key) .. stamp .. state end

local done = 0
if step == 'take' then
  drainTo(now)
  if full - level >= window then level, done = level + window, 1 end
elseif step == 'release' then
  local sent = unpack('>I6', admissions)
  local left = drained(window, at - sent)
  if sent <= at and left > 0 and level > 0 and (queue == 0 or sent == at) then
    level, done = math.max(0, level - left), 1
  end
elseif step == 'record' then
  for i = 1, #admissions, 14 do
    local sent = unpack('>I6', admissions, i)
    sent = math.min(sent, math.max(now, at))
    if sent >= at or drained(full, at - sent) > 0 then
      drainTo(sent)
      level, done = math.max(level, math.min(level + window, full)), 1
    end
  end
end
if done == 1 then call('SET', key, pack('>I8I8', at, level), 'PXAT', expires()) end
return done .. stamp .. state
