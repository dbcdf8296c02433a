-- Admits one send in this window, or says no, in one step. A no reads only.
--
-- KEYS[1]  the state of one key. The head: 6 bytes of when its window begins and 4 of how
--          many sends are in it
-- ARGV[2]  6 bytes of window, 4 of limit, 2 of how many admissions are remembered

local window, limit, most = unpack('>I6I4I2', ARGV[2])
local at, count = 0, 0
if head > 2 then at, count = unpack('>I6I4', state, 3) end

-- A clock that has stepped back behind the window counts as its beginning.
local clock = now < at and at or now
local start = clock - clock % window
local keeps = 0
if start == at then
  if count >= limit and not sent then return saw end
  keeps = held < most and held or most - 1
else
  count, sent = 0, nil
end
local newHead, expires, stays = pack('>I2I6I4', 10, start, count + 1), start + window, start == at
