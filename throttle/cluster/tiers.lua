-- A throttle.Policy. The state is a sorted set whose scores are 0: a member is an entry of the
-- state, with 6 bytes of milliseconds first, so members are in the order of time.
--
-- ARGV[5]  the longest window, ARGV[6] how many sends are kept
-- ARGV[7]  the limit of a tier, ARGV[8] its window; and so on for each tier

local longest, most, none = tonumber(ARGV[5]), tonumber(ARGV[6]), string.rep('\0', 8)

-- The sends, their times, and the end of the windows of all that were forgotten.
local old, sends, times, forgotten = call('ZRANGE', key, 0, -1), {}, {}, 0
for _, entry in ipairs(old) do
  local at, id = unpack('>I6c8', entry)
  if id == none then
    forgotten = at
  else
    sends[#sends + 1], times[#times + 1] = entry, at
  end
end
local state = table.concat(old)
local function expires() return math.max(#times > 0 and times[#times] + longest or 0, forgotten) + 1000 end
if now >= expires() then state, sends, times, forgotten = '', {}, {}, 0 end

local function clock() return math.max(now, times[#times] or 0, forgotten) end

-- The index of an id among all sends, nil if it is not on record.
local function find(id)
  for i = 1, #sends do
    if string.sub(sends[i], 7) == id then return i end
  end
end

local function remove(i)
  table.remove(times, i)
  table.remove(sends, i)
end

-- Adds a send and forgets the oldest: what has left the longest window by the newest send, and
-- what is too many.
local function add(at, id)
  local i = #times + 1
  while i > 1 and times[i - 1] > at do i = i - 1 end
  table.insert(times, i, at)
  table.insert(sends, i, pack('>I6', at) .. id)
  while times[#times] - times[1] >= longest do
    forgotten = math.max(forgotten, times[1] + longest)
    remove(1)
  end
  if #times > most then remove(1) end
end

-- Writes what has changed. The expiry is written in any case, so that a WAIT behind this script
-- waits for what an earlier one wrote too.
local function write()
  local fresh = {}
  for _, entry in ipairs(sends) do fresh[entry] = true end
  if forgotten > 0 then fresh[pack('>I6', forgotten) .. none] = true end
  for _, entry in ipairs(old) do
    if not fresh[entry] then call('ZREM', key, entry) end
    fresh[entry] = nil
  end
  for entry in pairs(fresh) do call('ZADD', key, 0, entry) end
  call('PEXPIREAT', key, expires() + shift)
end

function steps.take()
  local _, id = each()()
  local moment, known = clock(), find(id)
  if known and moment - times[known] < longest then
    write()
    return 2
  end
  for i = 7, #ARGV, 2 do
    local last = times[#times - ARGV[i] + 1] -- the next is sent when this one has left
    if last and moment - last < tonumber(ARGV[i + 1]) then return 0 end
  end
  add(moment, id)
  write()
  return 1
end

function steps.release()
  local _, id = each()()
  local known = find(id)
  if not known then return 0 end
  remove(known)
  write()
  return 1
end

function steps.record()
  local done = 0
  for at, id in each() do
    local moment = clock()
    local known = find(id)
    if not known and moment - at < longest then add(math.min(at, moment), id) end
    if known or moment - at < longest then done = 1 end
  end
  if done > 0 then write() end
  return done
end

return {steps[ARGV[1]](), state, now}
