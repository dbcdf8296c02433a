-- Puts sends into a bucket that were admitted elsewhere, each as of its time.
--
-- KEYS[1], ARGV[2]  as in bucket_begin.lua
--
-- since is 0 where sends are remembered also if the bucket has been empty after them: some
-- were recorded late, and more of that time may come. As in bucket_record.go of package meter.

local full, soon = room * window, 1000

-- What was in the bucket with each that is remembered, at this rate, unless that is stale; and
-- what was the most at any time, or more. With a thousand on record it takes long to work it out,
-- and a hundred may be told at once.
local with, highest, stale = {}, 0, false

local function freshen()
  local parts, when = before, since
  highest = 0
  for i = 1, #ids do
    local next = came[i]
    -- What is too large to be exact here is larger than what there is, too.
    parts, when = parts - (next - when) * limit, next
    if parts < 0 then parts = 0 end
    parts = parts + window
    with[i] = parts
    if parts > highest then highest = parts end
  end
  for i = #with, #ids + 1, -1 do with[i] = nil end
  if stale then level = parts end
  stale = false
end
freshen()

local function begin(from)
  forgetAll()
  with, highest, since, before = {}, 0, from, 0
end

-- Forgets the oldest until so many are left: what they had in the bucket was there before.
local function keepNewest(n)
  while #ids > n do
    since, before = came[1], drained(before, came[1] - since) + window
    forget()
    if not stale then table.remove(with, 1) end
  end
end

-- Remembers one more as the newest.
local function add(id, when, parts)
  local n = #ids
  local behind = n > 0 and drained(with[n], when - came[n]) or drained(before, when - since)
  hold(id, when, n + 1)
  with[n + 1] = behind + window
  highest = math.max(highest, behind + window)
  at, level = when, parts + window
  return '+'
end

-- As bucket_take.lua does.
local function take(id, when)
  local left = drained(level, when - at)
  if known[id] and left > 0 then return '=' end
  if left + window > full then return end
  if left == 0 and (known[id] or since > 0 or #ids == 0) then begin(when) end
  keepNewest(most - 1)
  return add(id, when, left)
end

-- For one that nothing on record came after.
local function recordNewest(id, when)
  local left = drained(level, when - at)
  if left + window > full then return end
  if left == 0 and since > 0 then
    begin(0)
  elseif before == 0 then
    since = 0
  end
  return add(id, when, left)
end

-- Where the rate has changed since they came, what was in the bucket when is known of its newest
-- moment alone.
local function sameRate()
  local n = #ids
  if n > 0 then return came[n] == at and with[n] == level end
  return since == at and before == level
end

local function recordAtOtherRate(id, when)
  if drained(full, at - when) == 0 or level + window > full then return end
  level = level + window
  hold(id, at, placeOf(at))
  freshen()
  return '+'
end

-- Whether there is room for one more in this place until it has drained. What was in the bucket
-- before it is as of moment.
local function fits(parts, moment, place, when)
  parts = drained(parts, when - moment) + window
  if parts > full then return false end
  moment = when
  for i = place, #ids do
    local next = came[i]
    parts, moment = parts - (next - moment) * limit, next -- as above
    if parts < 0 then parts = 0 end
    parts = parts + window
    if parts == with[i] then return true end
    if parts > full then return false end
  end
  return true
end

-- For one that others came after: it is put in if they leave room for it.
local function recordBetween(id, when, longAgo)
  if not stale and not sameRate() then return recordAtOtherRate(id, when) end
  local from = since
  if before == 0 then
    from = longAgo and 0 or math.min(since, when)
  elseif when < since then
    if drained(full, since - when) == 0 then return end
    when = since
  end
  if stale and highest + window > full then freshen() end
  local place = placeOf(when)
  if math.max(highest, before) + window > full then
    local parts, moment = before, from
    if place > 1 then parts, moment = with[place - 1], came[place - 1] end
    if not fits(parts, moment, place, when) then return end
  end
  since, highest, stale = from, highest + window, true
  hold(id, when, place)
  return '+'
end

local function record(id, when, clock)
  local longAgo = clock - when > soon
  if when >= at and stale then freshen() end
  if when >= at and not longAgo then return take(id, when) end
  if known[id] then return '=' end
  local did
  if when >= at then did = recordNewest(id, when) else did = recordBetween(id, when, longAgo) end
  keepNewest(1024)
  return did
end

local function newHead()
  if stale then freshen() end
  return pack('>I6I7I6I7', at, level, since, before)
end
local function expires() return at + drain(level) end

