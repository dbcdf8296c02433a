-- What the scripts begin with that keep a record as one string.
--
-- KEYS[1]  the record
-- ARGV[1]  the script's own
-- ARGV[2]  and this
-- ARGV[3]  the millisecond after which nobody waits for the answer any more, or ''
-- ARGV[4]  in tests alone: the clock's seconds
-- ARGV[5]  and its microseconds
--
-- returns  a letter; 6 bytes of the clock's milliseconds; and what more belongs to the
--          letter. With '!' nothing was done, as it is too late; with '?' as this is no
--          record of the script's
--
-- All numbers are whole, big-endian in bytes, and less than 2^53.

local call, pack, unpack, sub = redis.call, struct.pack, struct.unpack, string.sub
local key = KEYS[1]
local record = call('GET', key) or ''
local time = ARGV[4] and { ARGV[4], ARGV[5] } or call('TIME')
local now = time[1] * 1000 + (time[2] - time[2] % 1000) / 1000

local function answer(letter, more) return letter .. pack('>I6', now) .. (more or '') end
if ARGV[3] ~= '' and now > tonumber(ARGV[3]) then return answer('!') end

-- How long a record is kept that matters until then: a second more, as the server
-- measures it from a moment that need not be this one. Where a test holds the clock, an
-- hour more.
local function remaining(expires)
  return math.max(0, expires - now) + (ARGV[4] and 3600000 or 1000)
end

local function keep(new, expires) call('SET', key, new, 'PX', remaining(expires)) end

-- Writes what is there once more, so that a WAIT behind this call waits for the first
-- write too.
local function again(expires) call('PEXPIRE', key, remaining(expires)) end

