-- Gives back one send of this window.
--
-- KEYS[1], ARGV[2]  as in fixed_window_take.lua
--
-- returns  how many were given back, 0 or 1

if not sent then return 0 end
local window = unpack('>I6', ARGV[2])
local at, count = unpack('>I6I4', state, 3)
local clock = math.max(now, at)
if clock - clock % window ~= at then return 0 end

if count == 1 then return call('DEL', key) end
keep(pack('>I6I4', at, count - 1), sub(state, remembered, sent - 7) .. sub(state, sent + 8), at + window)
return 1
