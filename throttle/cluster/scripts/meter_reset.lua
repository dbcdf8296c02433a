-- Forgets what a meter keeps of a key.
--
-- KEYS[1]  the state of one key, as meter_begin.lua has it
-- ARGV[1]  in tests alone: the clock's seconds
-- ARGV[2]  and its microseconds
--
-- returns  what meter_begin.lua has a no return: what was forgotten

local state = redis.call('GETRANGE', KEYS[1], '0', '511')
if state == '' then state = '\0\0' end
local head = 2 + struct.unpack('>I2', state) % 32768
if head > 512 then state = redis.call('GETRANGE', KEYS[1], '0', head - 1) end
local time = ARGV[1] and { ARGV[1], ARGV[2] } or redis.call('TIME')
redis.call('DEL', KEYS[1])
return string.sub(state, 1, head) .. time[1] .. time[2]
