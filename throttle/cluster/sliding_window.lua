-- A throttle.SlidingWindow. The state is 8 bytes of start and 4 of count for each part, oldest
-- first.
--
-- ARGV[5]  the window, ARGV[6] the limit, ARGV[7] the length of a part

local window, limit, part = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local state, starts, counts = call('GET', key) or '', {}, {}
for i = 1, #state - 11, 12 do starts[#starts + 1], counts[#counts + 1] = unpack('>I8I4', state, i) end
local function leaves(start) return start + part - 1 + window end
if #starts > 0 and now >= leaves(starts[#starts]) + 1000 then state, starts, counts = '', {}, {} end

local function clock() return math.max(now, starts[#starts] or 0) end

-- The index of the part of a moment, or where it would be; its start; and whether it is there.
local function find(at)
  local start, i = at - at % part, #starts + 1
  while i > 1 and starts[i - 1] >= start do i = i - 1 end
  return i, start, starts[i] == start
end

local function add(at)
  local i, start, found = find(at)
  if not found then
    table.insert(starts, i, start)
    table.insert(counts, i, 0)
  end
  counts[i] = math.min(counts[i] + 1, 2 ^ 32 - 1)
end

-- Writes the parts that have not left, and of those without sends only the newest.
local function write()
  local parts, newest = {}, starts[#starts]
  for i, start in ipairs(starts) do
    if start == newest or counts[i] > 0 and leaves(start) > newest then
      parts[#parts + 1] = pack('>I8I4', start, counts[i])
    end
  end
  keep(table.concat(parts), leaves(newest) + 1000)
  return 1
end

function steps.take()
  local moment, used = clock(), 0
  for i, start in ipairs(starts) do
    if leaves(start) > moment then used = used + counts[i] end
  end
  if used >= limit then return 0 end
  add(moment)
  return write()
end

function steps.release()
  local i, _, found = find((each()()))
  if not found or counts[i] == 0 then return 0 end
  counts[i] = counts[i] - 1
  return write()
end

function steps.record()
  local done = 0
  for at in each() do
    local moment = clock()
    local _, start = find(math.min(at, moment))
    if leaves(start) > moment then
      add(start)
      done = 1
    end
  end
  return done == 1 and write() or 0
end

return {steps[ARGV[1]](), state, now}
