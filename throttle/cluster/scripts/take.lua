-- Admits one send or says no, in one step. A no reads only.
--
-- KEYS[1]  the sends of one mailbox: a sorted set whose scores are all 0 and whose
--          members are 6 bytes of milliseconds, big-endian, and 8 of reservation, so
--          that they lie in the order of time and no time is ever a float
-- ARGV[1]  the reservation
-- ARGV[2]  the tiers, shortest window first: 2 bytes of limit and 6 of window each
-- ARGV[3]  the clock, in tests alone
--
-- returns  1 byte: '+' admitted, '=' admitted before under this reservation, '-' denied
--          6 bytes: the clock
--          14 bytes a send: the sends before this one, oldest first

local key, id, tiers = KEYS[1], ARGV[1], ARGV[2]
local sends = redis.call('ZRANGE', key, 0, -1)
local now = ARGV[3]
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local unpack, count = struct.unpack, #sends
local before = struct.pack('>I6', now) .. table.concat(sends)
local clock = tonumber(now)
if count > 0 then clock = math.max(clock, unpack('>I6', sends[count])) end

-- Kept until the newest send has left the longest window, also when the clock has
-- stepped back behind it. A clock that a test holds still gets an hour more.
local longest = unpack('>I6', tiers, #tiers - 5)
local keep = longest + clock - now + (ARGV[3] and 3600000 or 0)

-- The 8 characters of an id can also appear across the border of two sends.
local at = string.find(before, id, 1, true)
while at and at % 14 ~= 13 do at = string.find(before, id, at + 1, true) end
if at and clock - unpack('>I6', before, at - 6) < longest then
  -- Written again, so that a WAIT behind this call waits for the first write too.
  redis.call('PEXPIRE', key, keep)
  return '=' .. before
end

for tier = 1, #tiers, 8 do
  local limit, window = unpack('>I2I6', tiers, tier)
  local send = sends[count - limit + 1]
  if send and clock - unpack('>I6', send) < window then return '-' .. before end
end

local stale = 0
while stale < count and clock - unpack('>I6', sends[stale + 1]) >= longest do stale = stale + 1 end
if stale > 0 then redis.call('ZREMRANGEBYRANK', key, 0, stale - 1) end
redis.call('ZADD', key, 0, struct.pack('>I6', clock) .. id)
redis.call('PEXPIRE', key, keep)
return '+' .. before
