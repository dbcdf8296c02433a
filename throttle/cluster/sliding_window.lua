-- A throttle.SlidingWindow. The state is 8 bytes of start and 4 of count for each part, oldest
-- first.
--
-- Parameters: the window, the limit, the length of a part.

local window, limit, part = unpack('>I6I6I6', params)
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

if step == 'reset' then return call('DEL', key) .. stamp .. state end

local done = 0
if step == 'take' then
  local moment, used = clock(), 0
  for i = 1, #starts do
    if leaves(starts[i]) > moment then used = used + counts[i] end
  end
  if used < limit then
    add(moment)
    done = 1
  end
elseif step == 'release' then
  local i, _, found = find((unpack('>I6', admissions)))
  if found and counts[i] > 0 then counts[i], done = counts[i] - 1, 1 end
elseif step == 'record' then
  for i = 1, #admissions, 14 do
    local at = unpack('>I6', admissions, i)
    local moment = clock()
    local _, start = find(math.min(at, moment))
    if leaves(start) > moment then
      add(start)
      done = 1
    end
  end
end
if done == 1 then
  -- The parts that have not left, and of those without sends only the newest.
  local parts, newest = {}, starts[#starts]
  for i = 1, #starts do
    if starts[i] == newest or counts[i] > 0 and leaves(starts[i]) > newest then
      parts[#parts + 1] = pack('>I8I4', starts[i], counts[i])
    end
  end
  call('SET', key, table.concat(parts), 'PXAT', leaves(newest) + 1000)
end
return done .. stamp .. state
