-- Admits one send in the window that ends now, or says no, in one step. A no reads only.
--
-- KEYS[1]  the state of one key. The head: 6 bytes of when the newest part of its window
--          begins, 4 of how many sends are in all parts, and 4 for each part, oldest first
-- ARGV[2]  6 bytes of window, 6 of part, 4 of limit, 2 of how many admissions are remembered
--
-- returns  what fixed_window_take.lua returns

local window, part, limit, most = unpack('>I6I6I4I2', ARGV[2])
local at, count = 0, 0
if head > 2 then at, count = unpack('>I6I4', state, 3) end

-- What comes from elsewhere when its part has left is not counted.
if elsewhere and math.max(today, at) >= now - now % part + part - 1 + window then return no() end

-- A clock that has stepped back behind the newest part counts as its beginning. A part
-- leaves as a whole, when its last millisecond does.
local clock = math.max(now, at)
local function weighs(sent) return clock < sent - sent % part + part - 1 + window end

local oldest = 13 -- where the oldest part that weighs stands
local begins = at - (head - oldest - 3) / 4 * part
while oldest < head and not weighs(begins) do
  count = count - unpack('>I4', state, oldest)
  oldest, begins = oldest + 4, begins + part
end

local sent = find()
if sent and weighs(unpack('>I6', state, sent)) then return again(at + part - 1 + window) end
if count >= limit then return no() end

-- The part of now becomes the newest, and has one send more.
local start = clock - clock % part
local parts = sub(state, oldest, head) .. string.rep('\0\0\0\0', oldest < head and (start - at) / part or 1)
local newest = unpack('>I4', parts, #parts - 3) + 1

local first = remembered
while first < #state and not weighs(unpack('>I6', state, first)) do first = first + 14 end
first = math.max(first, #state + 1 - (most - 1) * 14)
add(pack('>I6I4', start, count + 1) .. sub(parts, 1, -5) .. pack('>I4', newest),
  first, pack('>I6', clock) .. id, start + part - 1 + window)
return yes()
