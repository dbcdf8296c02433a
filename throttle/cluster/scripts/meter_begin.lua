-- What the scripts of all meters begin with, those that decide and those that give back.
-- They have hardly a function: to make one costs the server a tenth of a decision, each time.
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

local call, pack, unpack, sub, find = redis.call, struct.pack, struct.unpack, string.sub, string.find
local key, id, late = KEYS[1], ARGV[1], ARGV[3]
local state = call('GET', key) or '\0\0'
local time = ARGV[4] and { ARGV[4], ARGV[5] } or call('TIME')
local seconds, micros = time[1], time[2]
local now = seconds * 1000 + (micros - micros % 1000) / 1000
local today, elsewhere = now, false
if late ~= '' then
  elsewhere = sub(late, 1, 1) == '@'
  if elsewhere then
    now = math.min(now, tonumber(sub(late, 2)))
  elseif now > tonumber(late) then
    return '\0\0' .. seconds .. micros .. '!'
  end
end

-- The head ends here, and what is remembered begins there.
local size, head = #state, 2 + unpack('>I2', state)
local remembered = head + 1
if size - head > 1024 * 14 then remembered = size + 1 - 1024 * 14 end

-- Where the reservation stands, or nil. Its 8 characters can also appear across the border
-- of two admissions.
local sent = find(state, id, remembered + 6, true)
while sent and (sent - head) % 14 ~= 7 do sent = find(state, id, sent + 1, true) end

-- What a no returns: the head with its length, '\0\0' where there is none; and the clock, 10
-- digits of seconds and 1 to 6 of microseconds.
local saw = sub(state, 1, head) .. seconds .. micros

-- How long a state is kept longer than it matters: a second, as the server measures it from
-- a moment that need not be this one. Where a test holds the clock, an hour; and one that
-- was recorded in, for the sends of its time that are to come.
local grace = (ARGV[4] or elsewhere) and 3600000 or 1000

