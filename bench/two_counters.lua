-- A sliding window as it is usually kept in Redis: a counter for this window and the
-- one before, of which as much counts as is still inside.
--
-- KEYS[1]  what is counted
-- ARGV[1]  the caller's clock, in milliseconds
-- ARGV[2]  the limit
-- ARGV[3]  the window, in milliseconds
--
-- returns  1 for a yes, 0 for a no

local now, limit, window = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local turn = math.floor(now / window)
local inside = tonumber(redis.call('HGET', KEYS[1], turn)) or 0
local before = tonumber(redis.call('HGET', KEYS[1], turn - 1)) or 0
if before * (1 - now % window / window) + inside >= limit then return 0 end
redis.call('HINCRBY', KEYS[1], turn, 1)
if inside == 0 then redis.call('HDEL', KEYS[1], turn - 2) end
redis.call('PEXPIRE', KEYS[1], 2 * window)
return 1
