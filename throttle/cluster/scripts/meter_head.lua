-- What the scripts of all meters begin with that neither decide nor give back.
--
-- KEYS[1]  the state of one key, as meter_begin.lua has it
-- ARGV     each script's own, and behind it in tests alone: the clock's seconds, and its
--          microseconds
--
-- saw  what meter_begin.lua has a no return

local key = KEYS[1]
local state = redis.call('GETRANGE', key, '0', '511')
if state == '' then state = '\0\0' end
local head = 2 + struct.unpack('>I2', state) % 32768
if head > 512 then state = redis.call('GETRANGE', key, '0', head - 1) end
local time = #ARGV > 1 and { ARGV[#ARGV - 1], ARGV[#ARGV] } or redis.call('TIME')
local saw = string.sub(state, 1, head) .. time[1] .. time[2]
