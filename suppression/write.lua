-- Writes an entry of the suppression list and numbers the change.
--
-- Beside the entries, which are a hash, there are two sorted sets in the same slot: all fields by the
-- number of their last change, and those of entries that end by when they do. A removed entry is empty,
-- and ends now. What ended a day ago is deleted, a few with each change, so that all nodes have learned it.
--
-- KEYS[1]  the hash; its field '' is the number of the last change
-- ARGV[1]  the field
-- ARGV[2]  the value, empty to remove it
-- ARGV[3]  when it ends in milliseconds since 1970, 0 for never
-- returns  the number of the change, 0 if there was nothing to remove

local entries, changes, ends = KEYS[1], KEYS[1] .. ':changes', KEYS[1] .. ':ends'
local field, value, till = ARGV[1], ARGV[2], tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

for _, old in ipairs(redis.call('ZRANGE', ends, 0, now - 86400000, 'BYSCORE', 'LIMIT', 0, 10)) do
  redis.call('HDEL', entries, old)
  redis.call('ZREM', changes, old)
  redis.call('ZREM', ends, old)
end

if value == '' then
  if redis.call('HEXISTS', entries, field) == 0 then return 0 end
  till = now
end
-- The clock makes a number larger than those that a failover has lost.
local number = math.max((redis.call('HGET', entries, '') or 0) + 1, time[1] * 1000000 + time[2])
redis.call('HSET', entries, '', string.format('%.0f', number), field, value)
redis.call('ZADD', changes, string.format('%.0f', number), field)
if till > 0 then
  redis.call('ZADD', ends, till, field)
else
  redis.call('ZREM', ends, field)
end
return number
