
-- Forgets what a meter keeps of a key.
--
-- KEYS[1]  as in meter_head.lua
--
-- returns  what meter_begin.lua has a no return: what was forgotten

redis.call('DEL', key)
return saw
