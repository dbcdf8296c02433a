-- Takes one send out of a bucket, as if it had never been in there. Of a queue only the
-- last can go: those behind it have been told their turns.
--
-- KEYS[1], ARGV[2]  as in bucket_begin.lua
--
-- returns  how many were given back, 0 or 1

local sent = find()
if not sent or left == 0 then return 0 end
if queue == 1 and sent + 13 < #state then return 0 end
local held = sub(state, head + 1, sent - 1) .. sub(state, sent + 14)

-- Filled anew with the others. Where it turns out to have been empty, those before need
-- not be remembered.
at, level = since, before
local first = 1
for place = 1, #held, 14 do
  local when = unpack('>I6', held, place)
  at, level = when, drained(level, when - at)
  if level == 0 then since, before, first = when, 0, place end
  level = level + window
end

if level == 0 then return call('DEL', key) end
keep(pack('>I6I7I6I7', at, level, since, before), sub(held, first), '', at + drain(level))
return 1
