-- Forgets what a meter keeps of a key.
--
-- KEYS[1]  the state of one key, as meter_begin.lua has it
-- ARGV[1]  in tests alone: the clock's seconds
-- ARGV[2]  and its microseconds
--
-- returns  what meter_begin.lua has a no return: what was forgotten

local state = redis.call('GET', KEYS[1]) or '\0\0'
local time = ARGV[1] and { ARGV[1], ARGV[2] } or redis.call('TIME')
redis.call('DEL', KEYS[1])
return string.sub(state, 1, 2 + struct.unpack('>I2', state)) .. time[1] .. time[2]
