-- Admits one send in the window that ends now, or says no, in one step. A no reads only.
--
-- KEYS[1]  the state of one key. The head: 6 bytes of when the newest part of its window
--          begins, 4 of how many sends are in all parts, and 4 for each part, oldest first
-- ARGV[2]  6 bytes of window, 6 of part, 4 of limit, 2 of how many admissions are remembered

local window, part, limit, most = unpack('>I6I6I4I2', ARGV[2])
local at, count = 0, 0
if head > 2 then at, count = unpack('>I6I4', state, 3) end

-- A clock that has stepped back behind the newest part counts as its beginning. A part
-- leaves as a whole, when its last millisecond does: so what is sent from here on weighs.
local clock = now < at and at or now
local weighs = clock - window + 1
weighs = weighs - weighs % part

local oldest = 13 -- where the oldest part that weighs stands
local begins = at - (head - oldest - 3) / 4 * part
while oldest < head and begins < weighs do
  count = count - unpack('>I4', state, oldest)
  oldest, begins = oldest + 4, begins + part
end

if sent and unpack('>I6', state, sent - 6) < weighs then sent = nil end
if count >= limit and not sent then return saw end

-- The part of now becomes the newest, and has one send more.
local start = clock - clock % part
local parts = sub(state, oldest, head) .. string.rep('\0\0\0\0', oldest < head and (start - at) / part or 1)
local newest = unpack('>I4', parts, #parts - 3) + 1
local newHead = pack('>I2I6I4', 10 + #parts, start, count + 1) .. sub(parts, 1, -5) .. pack('>I4', newest)
local expires, stays = (sent and at or start) + part - 1 + window, start == at

-- Those that have left are the oldest of those that counted, and so are those that are not
-- remembered: what is left of both is the newest.
local keeps = math.min(held, count, most - 1)
