-- A throttle.FixedWindow. The state is 8 bytes of the window's start and 8 of its count.
--
-- ARGV[5]  the window, ARGV[6] the limit

local window, limit = tonumber(ARGV[5]), tonumber(ARGV[6])
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

local function write()
  keep(pack('>I8I8', start, count), start + window + 1000)
  return 1
end

function steps.take()
  start, count = current()
  if count >= limit then return 0 end
  count = count + 1
  return write()
end

function steps.release()
  if startOf(each()()) ~= start or count == 0 then return 0 end
  count = count - 1
  return write()
end

function steps.record()
  local done = 0
  for at in each() do
    local currentStart, currentCount, clock = current()
    if startOf(math.min(at, clock)) == currentStart and currentCount < 2 ^ 52 then
      start, count, done = currentStart, currentCount + 1, 1
    end
  end
  return done == 1 and write() or 0
end

return {steps[ARGV[1]](), state, now}
