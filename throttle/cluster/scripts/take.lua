-- Admits one send or says no, in one step. A no reads only.
--
-- KEYS[1]  the sends of one mailbox: a sorted set whose scores are all 0 and whose
--          members are 6 bytes of milliseconds, big-endian, and 8 of reservation, so
--          that they lie in the order of time and no time is ever a float
-- ARGV[1]  the reservation
-- ARGV[2]  the tiers, shortest window first: 2 bytes of limit and 6 of window each
-- ARGV[3]  the millisecond after which nobody waits for the answer any more, or ''
-- ARGV[4]  in tests alone: the clock's seconds
-- ARGV[5]  and its microseconds
--
-- returns  the sends before this one, oldest first; the clock, 10 digits of seconds and
--          1 to 6 of microseconds; and what was done: '+' admitted, '=' admitted before
--          under this reservation, '!' nothing as it is too late, nothing for a no

local call, unpack = redis.call, struct.unpack
local key, id, tiers = KEYS[1], ARGV[1], ARGV[2]
local sends = call('ZRANGE', key, '0', '-1')
local time = ARGV[4] and { ARGV[4], ARGV[5] } or call('TIME')
local now = time[1] * 1000 + (time[2] - time[2] % 1000) / 1000
if ARGV[3] ~= '' and now > tonumber(ARGV[3]) then return time[1] .. time[2] .. '!' end

-- A clock that has stepped back counts as the newest send.
local count, clock = #sends, now
if count > 0 then
  local newest = unpack('>I6', sends[count])
  if newest > now then clock = newest end
end
sends[count + 1], sends[count + 2] = time[1], time[2]
local before = table.concat(sends)

-- The 8 characters of an id can also appear across the border of two sends, or in the
-- clock behind them.
local known = string.find(before, id, 1, true)
while known and known % 14 ~= 7 do known = string.find(before, id, known + 1, true) end
if known and known > count * 14 then known = nil end

-- Kept until the newest send has left the longest window, also when the clock has
-- stepped back behind it, and a second more, as the server measures it from a moment
-- that need not be this one. Where a test holds the clock, an hour more.
local grace = clock - now + (ARGV[4] and 3600000 or 1000)

if known then
  local longest = unpack('>I6', tiers, #tiers - 5)
  if clock - unpack('>I6', before, known - 6) < longest then
    -- Written again, so that a WAIT behind this call waits for the first write too.
    call('PEXPIRE', key, longest + grace)
    return before .. '='
  end
end

local tier = 1
repeat
  local limit, window
  limit, window, tier = unpack('>I2I6', tiers, tier)
  if limit <= count and clock - unpack('>I6', sends[count - limit + 1]) < window then return before end
until tier > #tiers

local longest = unpack('>I6', tiers, #tiers - 5)
local stale = 0
while stale < count and clock - unpack('>I6', sends[stale + 1]) >= longest do stale = stale + 1 end
if stale > 0 then call('ZREMRANGEBYRANK', key, 0, stale - 1) end
call('ZADD', key, '0', struct.pack('>I6', clock) .. id)
call('PEXPIRE', key, longest + grace)
return before .. '+'
