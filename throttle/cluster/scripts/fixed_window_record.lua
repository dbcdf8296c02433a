-- Counts sends that were admitted elsewhere in the window of now.
--
-- KEYS[1], ARGV[2]  as in fixed_window_take.lua

local window, limit, most = unpack('>I6I4I2', ARGV[2])
local at, count = 0, 0
if head > 2 then at, count = unpack('>I6I4', state, 3) end

local function record(id, when, clock)
  local start = when - when % window
  if start + window <= clock then return end
  if start ~= at then
    forgetAll()
    at, count = start, 0
  end
  if known[id] then return '=' end
  if count == 4294967295 then return end
  count = count + 1
  hold(id, when, placeOf(when))
  while #ids > most do forget() end
  return '+'
end

local function newHead() return pack('>I6I4', at, count) end
local function expires() return at + window end

