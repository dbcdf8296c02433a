-- What the scripts of all meters begin with, those that decide and those that give back.
-- They have hardly a function: to make one costs the server a tenth of a decision, each time.
--
-- KEYS[1]  the state of one key: 2 bytes that say how long the head is; the head, which
--          is its algorithm's matter; and the admissions that can be given back, oldest
--          first, each 6 bytes of milliseconds and 8 of reservation, or of zero where
--          it was given back and its place is vacant. The last 1024 are remembered.
--          A long state is mostly known by its head, as to read all of it takes three times
--          as long as everything else. It is made once it remembers 256, and short again
--          below 128. Its first 2 bytes are larger by 32768. Between its head and its
--          admissions it has 2 bytes each of how many reservations its filter has got since
--          it was made, of how many admissions in front are forgotten, and are left there as
--          moving the others takes long, and of how many behind them are remembered; and
--          the filter: 1024 words of 4 bytes. Each reservation is two bits of a word. So
--          one that is new is seen to be so, but for two in a hundred when the filter is
--          about to be made anew. With its 3 numbers it is 4102 bytes
-- ARGV[1]  the reservation
-- ARGV[2]  the limits, each script's own
-- ARGV[3]  the millisecond after which nobody waits for the answer any more, or ''
-- ARGV[4]  in tests alone: the clock's seconds
-- ARGV[5]  and its microseconds
--
-- All numbers are whole, big-endian in bytes, and the sum of any two is less than 2^53:
-- so + - * and also % are exact, and / is where it leaves no rest.

local call, pack, unpack, sub, find = redis.call, struct.pack, struct.unpack, string.sub, string.find
local key, id, late = KEYS[1], ARGV[1], ARGV[3]
local state = call('GETRANGE', key, '0', '511')
if state == '' then state = '\0\0' end
local time = ARGV[4] and { ARGV[4], ARGV[5] } or call('TIME')
local seconds, micros = time[1], time[2]
local now = seconds * 1000 + (micros - micros % 1000) / 1000
if late ~= '' and now > tonumber(late) then return '\0\0' .. seconds .. micros .. '!' end

-- The head ends here.
local size, head = #state, 2 + unpack('>I2', state)
local long = head >= 32768

-- How many admissions are remembered, and where they begin.
local held, remembered

-- Of a long state: what stands behind its head; where the reservation's word of the filter
-- stands, from 0, and that word with its bits; and whether these are new, so that the
-- reservation is not on record and the head is all that was read.
local added, gone, place, word
local brief = false
if long then
  head = head - 32768
  if head > 506 then state = call('GETRANGE', key, '0', head + 5) end
  added, gone, held = unpack('>I2I2I2', state, head + 1)
  remembered = head + 4103 + gone * 14

  -- Where meter_admit.lua makes a filter, it has this once more.
  local x, y = unpack('>I4I4', id)
  local mixed = (x * 40503 + y * 30011) % 1048573
  local nth = mixed % 1024
  local bits = (mixed - nth) / 1024
  local low = bits % 32
  local one, other = 2 ^ low, 2 ^ ((bits - low) / 32)

  place = head + 6 + nth * 4
  local before = unpack('>I4', call('GETRANGE', key, place, place + 3))
  word = before
  if word % (2 * one) < one then word = word + one end
  if word % (2 * other) < other then word = word + other end
  brief = word ~= before
end

-- Where the reservation stands, or nil. Its 8 characters can also appear across the border
-- of two admissions.
local sent
if not brief then
  if size == 512 then state = call('GET', key) end
  size = #state
  if not long then
    held, remembered = (size - head) / 14, head + 1
    if held > 1024 then held, remembered = 1024, size + 1 - 1024 * 14 end
  end
  sent = find(state, id, remembered + 6, true)
  while sent and (sent - remembered) % 14 ~= 6 do sent = find(state, id, sent + 1, true) end
end

-- What a no returns: the head with its length, '\0\0' where there is none; and the clock, 10
-- digits of seconds and 1 to 6 of microseconds.
local saw = sub(state, 1, head) .. seconds .. micros

-- How long a state is kept longer than it matters: a second, as the server measures it from
-- a moment that need not be this one. Where a test holds the clock, an hour.
local grace = ARGV[4] and 3600000 or 1000

