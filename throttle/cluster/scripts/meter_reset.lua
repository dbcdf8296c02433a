
-- Forgets what a meter keeps of a key.
--
-- KEYS[1]  as in meter_head.lua
-- ARGV[1]  the millisecond after which nobody waits for the answer any more, or ''
--
-- returns  what meter_begin.lua has a no return: what was forgotten; or, where it is too
--          late, what it returns then

local late, now = ARGV[1], time[1] * 1000 + (time[2] - time[2] % 1000) / 1000
if late ~= '' and now > tonumber(late) then return saw .. '!' end
redis.call('DEL', key)
return saw
