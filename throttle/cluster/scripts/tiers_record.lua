-- Puts a send that was admitted elsewhere on record, at its own time, whether or not the
-- tiers admit it, in one step.
--
-- KEYS[1]  the sends of one mailbox, as take.lua writes them
-- ARGV[1]  the reservation
-- ARGV[2]  the longest window
-- ARGV[3]  the millisecond of the send; one that is ahead of the clock counts as the clock
-- ARGV[4]  how many sends are kept, the newest
-- ARGV[5]  the millisecond after which nobody waits for the answer any more, or ''
-- ARGV[6]  in tests alone: the clock's seconds
-- ARGV[7]  and its microseconds
--
-- returns  the clock, 10 digits of seconds and 1 to 6 of microseconds; and what was done:
--          '+' put on record, '=' on record already, '!' nothing as it is too late, nothing
--          where the send no longer matters

local call, unpack, sub = redis.call, struct.unpack, string.sub
local key, id, longest, most = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[4])
local sends = call('ZRANGE', key, '0', '-1')
local time = ARGV[6] and { ARGV[6], ARGV[7] } or call('TIME')
local now = time[1] * 1000 + (time[2] - time[2] % 1000) / 1000
if ARGV[5] ~= '' and now > tonumber(ARGV[5]) then return time[1] .. time[2] .. '!' end
local count, newest = #sends, 0
if count > 0 then newest = unpack('>I6', sends[count]) end

-- A clock that has stepped back counts as the newest send.
local clock = math.max(now, newest)
local at = math.min(tonumber(ARGV[3]), clock)

-- Kept as long as take.lua keeps it.
local function keep() call('PEXPIRE', key, newest + longest - now + (ARGV[6] and 3600000 or 1000)) end

local stale = 0
while stale < count and clock - unpack('>I6', sends[stale + 1]) >= longest do stale = stale + 1 end
for place = stale + 1, count do
  if sub(sends[place], 7) == id then
    -- Written again, so that a WAIT behind this call waits for the first write too.
    keep()
    return time[1] .. time[2] .. '='
  end
end
local over = count - stale + 1 - most
if clock - at >= longest or over > 0 and at < unpack('>I6', sends[stale + 1]) then return time[1] .. time[2] end

stale = stale + math.max(0, over)
if stale > 0 then call('ZREMRANGEBYRANK', key, 0, stale - 1) end
call('ZADD', key, '0', struct.pack('>I6', at) .. id)
newest = math.max(newest, at)
keep()
return time[1] .. time[2] .. '+'
