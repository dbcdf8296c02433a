-- Gives back one send of the window that ends now.
--
-- KEYS[1], ARGV[2]  as in sliding_window_take.lua
--
-- returns  how many were given back, 0 or 1

if not sent then return 0 end
local window, part = unpack('>I6I6', ARGV[2])
local at, count = unpack('>I6I4', state, 3)
local when = unpack('>I6', state, sent - 6)
local start = when - when % part
if math.max(now, at) >= start + part - 1 + window then return 0 end

if count == 1 then return call('DEL', key) end
local place = head - 3 - (at - start) / part * 4 -- where its part stands
local parts = sub(state, 13, place - 1) .. pack('>I4', unpack('>I4', state, place) - 1) .. sub(state, place + 4, head)

-- The state ends with its newest send.
while sub(parts, -4) == '\0\0\0\0' do parts, at = sub(parts, 1, -5), at - part end
keep(pack('>I6I4', at, count - 1) .. parts,
  sub(state, remembered, sent - 7) .. sub(state, sent + 8), at + part - 1 + window)
return 1
