-- Takes one send out of a bucket, as if it had never been in there. Those behind it in a
-- queue have been told their turns and keep them: so it leaves its place vacant, 8 zero
-- bytes in place of the reservation, and only with the last go all that were vacant before.
--
-- KEYS[1], ARGV[2]  as in bucket_begin.lua
--
-- returns  how many were given back, 0 or 1

local vacant = string.rep('\0', 8)
local from = id ~= vacant and find()
if not from or left == 0 then return 0 end
local behind = from + 14
if queue == 1 then
  if behind < #state then
    keep(sub(state, 3, head), sub(state, head + 1, from + 5) .. vacant, sub(state, behind), at + drain(level))
    return 1
  end
  while from > head + 1 and sub(state, from - 8, from - 1) == vacant do from = from - 14 end
end

-- What a bucket that drains at this rate would have in it with these sends, as of when,
-- and the last that would have found it empty, or nil.
local function refilled(held)
  local when, parts, empty = since, before, nil
  for place = 1, #held, 14 do
    local came = unpack('>I6', held, place)
    parts, when = drained(parts, came - when), came
    if parts == 0 then empty = place end
    parts = parts + window
  end
  return when, parts, empty
end

-- Filled anew with the others. Where it turns out to have been empty, those before need
-- not be remembered. Where the rate has changed nobody knows how it would have been: then
-- each is one send less, or what is left of one.
local when, parts = refilled(sub(state, head + 1))
local held = sub(state, head + 1, from - 1) .. sub(state, behind)
if when == at and parts == level then
  local empty
  at, level, empty = refilled(held)
  if empty then
    held = sub(held, empty)
    since, before = unpack('>I6', held), 0
  end
else
  level = math.max(0, level - (behind - from) / 14 * window)
end

if level == 0 then return call('DEL', key) end
keep(pack('>I6I7I6I7', at, level, since, before), held, '', at + drain(level))
return 1
