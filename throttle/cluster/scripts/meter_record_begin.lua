-- What the scripts begin with that put many sends on record that were admitted elsewhere, as
-- if one after the other, in one step. They count as package meter's Record does.
--
-- KEYS[1]  the state of one key, as meter_begin.lua has it
-- ARGV[1]  the sends, each 8 bytes of reservation and 6 of its millisecond
-- ARGV[2]  and those behind it are as in meter_begin.lua

local call, pack, unpack, sub = redis.call, struct.pack, struct.unpack, string.sub
local key, sends, late = KEYS[1], ARGV[1], ARGV[3]
local time = ARGV[4] and { ARGV[4], ARGV[5] } or call('TIME')
local seconds, micros = time[1], time[2]
local now = seconds * 1000 + (micros - micros % 1000) / 1000
if late ~= '' and now > tonumber(late) then return '\0\0' .. seconds .. micros .. '!' end
local state = call('GET', key) or '\0\0'
local head = 2 + unpack('>I2', state)
local remembered = math.max(head + 1, #state + 1 - 1024 * 14)
if head >= 32768 then
  head = head - 32768
  remembered = head + 4103 + unpack('>I2', state, head + 3) * 14
end

-- The admissions that are remembered, and of each reservation when it came.
local ids, came, known = {}, {}, {}
for from = remembered, #state, 14 do
  local n, when, id = #ids + 1, unpack('>I6c8', state, from)
  ids[n], came[n], known[id] = id, when, when
end

-- The place in time of one more.
local function placeOf(when)
  local place = #ids + 1
  while place > 1 and came[place - 1] > when do place = place - 1 end
  return place
end

-- Remembers one more in this place.
local function hold(id, when, place)
  table.insert(ids, place, id)
  table.insert(came, place, when)
  known[id] = when
end

-- Forgets the oldest.
local function forget()
  known[ids[1]] = nil
  table.remove(ids, 1)
  table.remove(came, 1)
end

local function forgetAll() ids, came, known = {}, {}, {} end

