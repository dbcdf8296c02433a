-- Takes one send out of a bucket, as if it had never been in there. Those behind it in a
-- queue have been told their turns and keep them: so it leaves its place vacant, 8 zero
-- bytes in place of the reservation, and only with the last go all that were vacant before.
--
-- KEYS[1], ARGV[2]  as in bucket_begin.lua
--
-- returns  how many were given back, 0 or 1

local vacant = string.rep('\0', 8)
if not sent or id == vacant or left == 0 then return 0 end
local from = sent - 6
local behind = from + 14
if queue == 1 then
  if behind < size then
    keep(sub(state, 3, head), sub(state, remembered, from + 5) .. vacant .. sub(state, behind), at + drain(level))
    return 1
  end
  while from > remembered and sub(state, from - 8, from - 1) == vacant do from = from - 14 end
end

-- The bucket is filled anew, at this rate, with all of them and with the others alone.
-- Where the others find it empty, those before need not be remembered.
local whole, when, rest, last, first = before, since, before, since, remembered
for place = first, size, 14 do
  local came = unpack('>I6', state, place)
  whole, when = drained(whole, came - when) + window, came
  if place < from or place >= behind then
    rest, last = drained(rest, came - last), came
    if rest == 0 then since, before, first = came, 0, place end
    rest = rest + window
  end
end

-- Where the rate has changed since, nobody knows how it would have been without them:
-- then each is one send less, or what is left of one.
if when == at and whole == level then
  at, level = last, rest
else
  since, before = unpack('>I6I7', state, 16)
  level, first = math.max(0, level - (behind - from) / 14 * window), remembered
end

if level == 0 then return call('DEL', key) end
local held = sub(state, math.max(first, behind))
if first < from then held = sub(state, first, from - 1) .. held end
keep(pack('>I6I7I6I7', at, level, since, before), held, at + drain(level))
return 1
