-- What the scripts of all meters begin with, those that decide and those that give back.
--
-- KEYS[1]  the state of one key: 2 bytes that say how long the head is; the head, which
--          is its algorithm's matter; and the admissions that can be given back, oldest
--          first, each 6 bytes of milliseconds and 8 of reservation, or of zero where
--          it was given back and its place is vacant
-- ARGV[1]  the reservation
-- ARGV[2]  the limits, each script's own
-- ARGV[3]  the millisecond after which nobody waits for the answer any more, or ''; or @ and
--          the millisecond of a send that was admitted elsewhere and is put on record as of
--          then
-- ARGV[4]  in tests alone: the clock's seconds
-- ARGV[5]  and its microseconds
--
-- All numbers are whole, big-endian in bytes, and the sum of any two is less than 2^53:
-- so + - * and also % are exact, and / is where it leaves no rest.

local call, pack, unpack, sub = redis.call, struct.pack, struct.unpack, string.sub
local key, id = KEYS[1], ARGV[1]
local state = call('GET', key) or '\0\0'
local time = ARGV[4] and { ARGV[4], ARGV[5] } or call('TIME')
local now = time[1] * 1000 + (time[2] - time[2] % 1000) / 1000
local today, elsewhere = now, sub(ARGV[3], 1, 1) == '@'
if elsewhere then
  now = math.min(now, tonumber(sub(ARGV[3], 2)))
elseif ARGV[3] ~= '' and now > tonumber(ARGV[3]) then
  return '\0\0' .. time[1] .. time[2] .. '!'
end

-- The admissions are behind so many bytes.
local head = 2 + unpack('>I2', state)

-- Where the admission under this reservation begins, or nil. Its 8 characters can also
-- appear across the border of two admissions.
local function find()
  local at = string.find(state, id, head + 7, true)
  while at and (at - head) % 14 ~= 7 do at = string.find(state, id, at + 1, true) end
  return at and at - 6
end

-- How long a state is kept that matters until then: a second more, as the server
-- measures it from a moment that need not be this one. Where a test holds the clock, an
-- hour more; and one that was recorded in, for the sends of its time that are to come.
local function remaining(expires)
  return math.max(0, expires - today) + ((ARGV[4] or elsewhere) and 3600000 or 1000)
end

-- Keeps a state with a new head, these of its admissions, and perhaps one more. A state
-- can be long, so it is put together in one piece.
local function keep(newHead, held, one, expires)
  call('SET', key, pack('>I2', #newHead) .. newHead .. held .. one, 'PX', remaining(expires))
end

-- The answers of a script that decides.
local function no() return sub(state, 1, head) .. time[1] .. time[2] end
local function yes() return sub(state, 1, head) .. time[1] .. time[2] .. '+' end

-- Admitted before. The key is written to, so that a WAIT behind this call waits for the
-- first write too.
local function again(expires)
  call('PEXPIRE', key, remaining(expires))
  return state .. time[1] .. time[2] .. '='
end

