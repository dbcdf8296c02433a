-- A throttle.Policy. The state is a sorted set whose scores are 0: a member is an entry of the
-- state, with 6 bytes of milliseconds first, so members are in the order of time.
--
-- Parameters: how many sends are kept; the limit and the window of each tier, the shortest first.

local most = unpack('>I6', params)
local longest = unpack('>I6', params, #params - 5)
local none = '\0\0\0\0\0\0\0\0'

-- The sends, their times, and the end of the windows of all that were forgotten.
local sends, times, forgotten = call('ZRANGE', key, '0', '-1'), {}, 0
local state = table.concat(sends)
if string.find(state, none, 1, true) then
  for i = #sends, 1, -1 do
    if string.sub(sends[i], 7) == none then forgotten = unpack('>I6', table.remove(sends, i)) end
  end
end
for i = 1, #sends do times[i] = unpack('>I6', sends[i]) end

local function expires() return math.max(#times > 0 and times[#times] + longest or 0, forgotten) + 1000 end
if state ~= '' and now >= expires() then -- Redis has forgotten it by itself, if by the same clock
  call('DEL', key)
  state, sends, times, forgotten = '', {}, {}, 0
end

local function clock() return math.max(now, times[#times] or 0, forgotten) end

-- Whether a tier has no room at a moment.
local function full(moment)
  for i = 7, #params, 12 do
    local limit, window = unpack('>I6I6', params, i)
    local last = times[#times - limit + 1] -- there is room when this one has left
    if last and moment - last < window then return true end
  end
end

-- Most steps end here.
local id = string.sub(admissions, 7, 14)
if step == 'peek' or step == 'take' and full(clock()) and not string.find(state, id, 1, true) then
  return {0, state, now}
end

-- The index of an id among all sends, nil if it is not on record.
local function find(id)
  for i = 1, #sends do
    if string.sub(sends[i], 7) == id then return i end
  end
end

local function remove(i)
  call('ZREM', key, sends[i])
  table.remove(times, i)
  table.remove(sends, i)
end

-- Adds a send and forgets the oldest: what has left the longest window by the newest send, and
-- what is too many.
local function add(at, id)
  local i, entry, left = #times + 1, pack('>I6', at) .. id, 0
  while i > 1 and times[i - 1] > at do i = i - 1 end
  table.insert(times, i, at)
  table.insert(sends, i, entry)
  call('ZADD', key, '0', entry)
  while times[#times] - times[1] >= longest do
    left = times[1] + longest
    remove(1)
  end
  if left > forgotten then
    if forgotten > 0 then call('ZREM', key, pack('>I6', forgotten) .. none) end
    forgotten = left
    call('ZADD', key, '0', pack('>I6', forgotten) .. none)
  end
  if #times > most then remove(1) end
end

local done = 0
if step == 'take' then
  local moment, known = clock(), find(id)
  if known and moment - times[known] < longest then
    done = 2
  elseif not full(moment) then
    add(moment, id)
    done = 1
  end
elseif step == 'release' then
  local known = find(id)
  if known then
    remove(known)
    done = 1
  end
elseif step == 'record' then
  for i = 1, #admissions, 14 do
    local at, id = unpack('>I6c8', admissions, i)
    local moment = clock()
    if find(id) then
      done = 1
    elseif moment - at < longest then
      add(math.min(at, moment), id)
      done = 1
    end
  end
elseif step == 'reset' then
  done = call('DEL', key)
end
-- Also where nothing else was written, so that a WAIT behind this script waits for what an earlier
-- one wrote.
if done > 0 then call('PEXPIREAT', key, expires() + shift) end
return {done, state, now}
