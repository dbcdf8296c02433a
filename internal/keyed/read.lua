-- Reads a value together with the server's clock.
--
-- KEYS[1]  the key
-- returns  the value (false: none), the seconds and the microseconds of the clock

local time = redis.call('TIME')
return {redis.call('GET', KEYS[1]), time[1], time[2]}
