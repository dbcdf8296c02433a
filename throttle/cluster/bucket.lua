-- A throttle.TokenBucket or LeakyBucket. The state is 8 bytes of the latest moment and 8 of the
-- level then. A send is as many units as the window has milliseconds, and limit of them drain
-- in each.
--
-- ARGV[5]  the window, ARGV[6] the limit, ARGV[7] how many sends there is room for
-- ARGV[8]  1 for a LeakyBucket, which releases only the newest send

local window, limit, full = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7] * ARGV[5]
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

local function write()
  keep(pack('>I8I8', at, level), expires())
  return 1
end

function steps.take()
  drainTo(now)
  if full - level < window then return 0 end
  level = level + window
  return write()
end

function steps.release()
  local sent = each()()
  local left = drained(window, at - sent)
  if sent > at or left == 0 or level == 0 or ARGV[8] == '1' and sent < at then return 0 end
  level = math.max(0, level - left)
  return write()
end

function steps.record()
  local done = 0
  for sent in each() do
    sent = math.min(sent, math.max(now, at))
    if sent >= at or drained(full, at - sent) > 0 then
      drainTo(sent)
      level, done = math.min(level + window, full), 1
    end
  end
  return done == 1 and write() or 0
end

return {steps[ARGV[1]](), state, now}
