-- Looks at a mailbox without changing it.
--
-- KEYS[1]  the sends of one mailbox, as take.lua writes them
-- ARGV[1]  the clock, in tests alone
--
-- returns  what take.lua returns for a denial

local now = ARGV[1]
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
return '-' .. struct.pack('>I6', now) .. table.concat(redis.call('ZRANGE', KEYS[1], 0, -1))
