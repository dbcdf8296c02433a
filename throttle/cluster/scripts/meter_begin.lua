-- What the scripts of all meters begin with, those that decide and those that give back.
--
-- KEYS[1]  the state of one key: 2 bytes that say how long the head is; the head, which
--          is its algorithm's matter; and the admissions that can be given back, oldest
--          first, each 6 bytes of milliseconds and 8 of reservation, or of zero where
--          it was given back and its place is vacant. Only the last 1024 are remembered:
--          those before are left there, as moving all the others takes long
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

-- The head ends here, and what is remembered begins there.
local head = 2 + unpack('>I2', state)
local remembered = math.max(head + 1, #state + 1 - 1024 * 14)

-- Where the admission under this reservation begins, or nil. Its 8 characters can also
-- appear across the border of two admissions.
local function find()
  local at = string.find(state, id, remembered + 6, true)
  while at and (at - head) % 14 ~= 7 do at = string.find(state, id, at + 1, true) end
  return at and at - 6
end

-- How long a state is kept that matters until then: a second more, as the server
-- measures it from a moment that need not be this one. Where a test holds the clock, an
-- hour more; and one that was recorded in, for the sends of its time that are to come.
local function remaining(expires)
  return math.max(0, expires - today) + ((ARGV[4] or elsewhere) and 3600000 or 1000)
end

-- Keeps a state with a new head and these of its admissions, put together in one piece.
local function keep(newHead, held, expires)
  call('SET', key, pack('>I2', #newHead) .. newHead .. held, 'PX', remaining(expires))
end

-- Keeps a state with a new head, its admissions from the first on, and one more. A long one
-- is changed where it is, if only as many are forgotten as one more leaves behind.
local function add(newHead, first, one, expires)
  local length = #state - remembered + 1
  local leaves = length < 1024 * 14 and 0 or 14
  if length > 256 * 14 and first == remembered + leaves and #newHead == head - 2 and remembered < head + 128 * 14 then
    call('SETRANGE', key, 2, newHead)
    call('APPEND', key, one)
    call('PEXPIRE', key, remaining(expires))
  else
    keep(newHead, sub(state, first) .. one, expires)
  end
end

-- The answers of a script that decides.
local function no() return sub(state, 1, head) .. time[1] .. time[2] end
local function yes() return sub(state, 1, head) .. time[1] .. time[2] .. '+' end

-- Admitted before. The key is written to, so that a WAIT behind this call waits for the
-- first write too.
local function again(expires)
  call('PEXPIRE', key, remaining(expires))
  return sub(state, 1, head) .. sub(state, remembered) .. time[1] .. time[2] .. '='
end

