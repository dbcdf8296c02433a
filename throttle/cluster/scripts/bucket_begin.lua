-- What both scripts of buckets begin with, behind meter_begin.lua.
--
-- KEYS[1]  the state of one key. The head: 6 bytes of when and 7 of how many parts of a
--          send were in the bucket then, and the same before the oldest admission; 0 of both
--          where the bucket may have been empty since, as bucket_record.lua says
-- ARGV[2]  6 bytes of window: so many parts has a send; 4 of limit: so many parts drain in
--          a millisecond; 4 of how many sends there is room for; 2 of how many admissions
--          are remembered; and 1 that is 1 where sends queue

local window, limit, room, most, queue = unpack('>I6I4I4I2I1', ARGV[2])
local at, level, since, before = 0, 0, 0, 0
if head > 2 then at, level, since, before = unpack('>I6I7I6I7', state, 3) end

-- How many milliseconds it takes to drain so many parts, rounded up.
local function drain(parts)
  parts = parts + limit - 1
  return (parts - parts % limit) / limit
end

-- What is left of so many parts after so many milliseconds.
local function drained(parts, ms)
  if ms >= drain(parts) then return 0 end
  return parts - ms * limit
end

-- A clock that has stepped back counts as when the state was written.
local clock = now < at and at or now
local left = drained(level, clock - at)

