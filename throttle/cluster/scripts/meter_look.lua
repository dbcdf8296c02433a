
-- Looks at what a meter keeps of a key without changing it.
--
-- KEYS[1]  as in meter_head.lua
--
-- returns  what meter_begin.lua has a no return

return saw
