-- Forgets a mailbox.
--
-- KEYS[1]  the sends of one mailbox, as take.lua writes them
-- ARGV[1]  the millisecond after which nobody waits for the answer any more, or ''
-- ARGV[2]  in tests alone: the clock's seconds
-- ARGV[3]  and its microseconds
--
-- returns  what take.lua returns for a no: what was forgotten; or, where it is too late,
--          what it returns then

local sends = redis.call('ZRANGE', KEYS[1], '0', '-1')
local time = ARGV[2] and { ARGV[2], ARGV[3] } or redis.call('TIME')
local now = time[1] * 1000 + (time[2] - time[2] % 1000) / 1000
if ARGV[1] ~= '' and now > tonumber(ARGV[1]) then return time[1] .. time[2] .. '!' end
redis.call('DEL', KEYS[1])
return table.concat(sends) .. time[1] .. time[2]
