-- Writes entries of the suppression list and numbers the changes.
--
-- The entries are a hash. Beside it, in the same slot, one sorted set has all fields by the number of their last
-- change, and another has the fields of entries that end by that moment. A removed entry is empty, and ends now.
-- Each call deletes a few entries that ended a day ago, when all nodes have learned it.
--
-- KEYS[1]  the hash; its field '' is the number of the last change
-- ARGV     for each entry six: the field; the value, empty to remove it; when it ends in milliseconds since
--          1970, 0 for never; 0, or of an entry that a node kept alone when it was made: then it is not
--          written over one in force, or if it was removed since; the event that it is written for,
--          which is known for so many milliseconds, or ''
-- returns  the number of the last change and how many there were, or -1 if the event was known

local entries, changes, ends = KEYS[1], KEYS[1] .. ':changes', KEYS[1] .. ':ends'
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

for _, old in ipairs(redis.call('ZRANGE', ends, 0, now - 86400000, 'BYSCORE', 'LIMIT', 0, 10)) do
  redis.call('HDEL', entries, old)
  redis.call('ZREM', changes, old)
  redis.call('ZREM', ends, old)
end

local function passes(field, value, since)
  local held = redis.call('HGET', entries, field)
  if value == '' then return held end
  if since == 0 or not held then return true end
  local ended = tonumber(redis.call('ZSCORE', ends, field) or now + 1)
  return ended <= (held == '' and since or now)
end

-- The clock makes a number larger than those that a failover has lost.
local number, written = math.max(redis.call('HGET', entries, '') or 0, time[1] * 1000000 + time[2] - 1), 0
for i = 1, #ARGV, 6 do
  local field, value, till = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2])
  if ARGV[i + 4] ~= '' then
    local event = KEYS[1] .. ':event:' .. ARGV[i + 4]
    if redis.call('PEXPIRE', event, ARGV[i + 5]) == 1 then return {number, -1} end
    redis.call('SET', event, '', 'PX', ARGV[i + 5])
  end
  if passes(field, value, tonumber(ARGV[i + 3])) then
    if value == '' then till = now end
    number, written = number + 1, written + 1
    redis.call('HSET', entries, field, value)
    redis.call('ZADD', changes, string.format('%.0f', number), field)
    if till > 0 then
      redis.call('ZADD', ends, till, field)
    else
      redis.call('ZREM', ends, field)
    end
  end
end
if written > 0 then redis.call('HSET', entries, '', string.format('%.0f', number)) end
return {number, written}
