-- A throttle.Policy. The state is a sorted set. A member is an entry of the state, with 6 bytes of milliseconds
-- first, and all scores are 0, so members are in the order of time.
--
-- Parameters: how many sends are kept; the longest window; the limit and the window of each
-- tier, the shortest first.
--
-- A function costs Redis as much as a whole tier, so there is none before a refusal returns.

local most, longest = unpack('>I6I6', params)
local sends, newest = call('ZRANGE', key, '0', '-1'), 0
local state, count = table.concat(sends), #sends
if count > 0 then newest = unpack('>I6', sends[count]) end
local gone = count > 0 and now >= newest + longest + 1000
if gone then state, sends, count, newest = '', {}, 0, 0 end

-- The clock, which never goes back, and whether a tier is full. A tier of limit n has room when the
-- n-th newest send has left the window.
local moment, full, at = math.max(now, newest), false, 13
repeat
  local limit, window
  limit, window, at = unpack('>I6I6', params, at)
  full = count >= limit and moment - unpack('>I6', sends[count - limit + 1]) < window
until full or at > #params

local id = string.sub(admissions, 7, 14)
if step == 'peek' or step == 'take' and full and not string.find(state, id, 1, true) then
  return '0' .. stamp .. state
end

-- The index and the time of the send with an id, nil if it is not on record.
local function find(id)
  for i = 1, #sends do
    if string.sub(sends[i], 7) == id then return i, (unpack('>I6', sends[i])) end
  end
end

-- Adds a send and forgets the oldest: what has left the longest window by the newest send, and
-- what is too many.
local function add(at, id)
  local i, entry = #sends + 1, pack('>I6', at) .. id
  while i > 1 and unpack('>I6', sends[i - 1]) > at do i = i - 1 end
  table.insert(sends, i, entry)
  if gone then
    call('DEL', key)
    gone = false
  end
  call('ZADD', key, '0', entry)
  newest = unpack('>I6', sends[#sends])
  while newest - unpack('>I6', sends[1]) >= longest do call('ZREM', key, table.remove(sends, 1)) end
  if #sends > most then call('ZREM', key, table.remove(sends, 1)) end
end

local done = 0
if step == 'take' then
  local known, sent = find(id)
  if known and moment - sent < longest then
    done = 2
  elseif not full then
    add(moment, id)
    done = 1
  end
elseif step == 'release' then
  local known = find(id)
  if known then
    call('ZREM', key, table.remove(sends, known))
    done = 1
  end
elseif step == 'record' then
  for i = 1, #admissions, 14 do
    local at, id = unpack('>I6c8', admissions, i)
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
if done > 0 and #sends > 0 then
  call('PEXPIREAT', key, unpack('>I6', sends[#sends]) + longest + 1000)
end
return done .. stamp .. state
