-- Admits one send in this window, or says no, in one step. A no reads only.
--
-- KEYS[1]  the state of one key. The head: 6 bytes of when its window begins and 4 of how
--          many sends are in it
-- ARGV[2]  6 bytes of window, 4 of limit, 2 of how many admissions are remembered
--
-- returns  the head with its length, '\0\0' where there is none; the clock, 10 digits of
--          seconds and 1 to 6 of microseconds; and what was done: '+' admitted, '=' admitted
--          before under this reservation, '!' nothing as it is too late, nothing for a no.
--          With '=' the admissions stand behind the head

local window, limit, most = unpack('>I6I4I2', ARGV[2])
local at, count = 0, 0
if head > 2 then at, count = unpack('>I6I4', state, 3) end

-- What comes from elsewhere when its window has ended is not counted.
if elsewhere and now - now % window + window <= math.max(today, at) then return no() end

-- A clock that has stepped back behind the window counts as its beginning.
local clock = math.max(now, at)
local start = clock - clock % window
local first = #state + 1
if start == at then
  if find() then return again(at + window) end
  if count >= limit then return no() end
  first = math.max(remembered, first - (most - 1) * 14)
else
  count = 0
end
add(pack('>I6I4', start, count + 1), first, pack('>I6', clock) .. id, start + window)
return yes()
