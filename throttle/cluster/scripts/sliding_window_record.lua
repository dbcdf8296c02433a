-- Counts sends that were admitted elsewhere, each in the part of its time.
--
-- KEYS[1], ARGV[2]  as in sliding_window_take.lua

local window, part, limit, most = unpack('>I6I6I4I2', ARGV[2])
local at, count, parts = 0, 0, {}
if head > 2 then at, count = unpack('>I6I4', state, 3) end
for from = 13, head, 4 do parts[#parts + 1] = unpack('>I4', state, from) end

-- When what came at a moment weighs no more.
local function leaves(when) return when - when % part + part - 1 + window end

-- Makes the part of a moment the newest, where it is not, without those that have gone.
local function advance(moment)
  while #parts > 0 and moment >= leaves(at - (#parts - 1) * part) do
    count = count - table.remove(parts, 1)
  end
  local start = moment - moment % part
  if #parts == 0 then at = start - part end
  while at < start do at, parts[#parts + 1] = at + part, 0 end
end

local function record(id, when, clock)
  if clock >= leaves(when) then return end
  local moment = math.max(when, at)
  if known[id] and moment < leaves(known[id]) then return '=' end
  if count == 4294967295 then return end
  advance(moment)
  local place = #parts - (at - when + when % part) / part
  while place < 1 do
    table.insert(parts, 1, 0)
    place = place + 1
  end
  while #ids > 0 and moment >= leaves(came[1]) do forget() end
  -- Where some that count are not remembered, they are the oldest, and stay so.
  if count == #ids or when >= (came[1] or at) then
    hold(id, when, placeOf(when))
    while #ids > most do forget() end
  end
  parts[place], count = parts[place] + 1, count + 1
  return '+'
end

local function newHead()
  local texts = {}
  for i = 1, #parts do texts[i] = pack('>I4', parts[i]) end
  return pack('>I6I4', at, count) .. table.concat(texts)
end
local function expires() return leaves(at) end

