-- Looks at a mailbox without changing it.
--
-- KEYS[1]  the sends of one mailbox, as take.lua writes them
-- ARGV[1]  in tests alone: the clock's seconds
-- ARGV[2]  and its microseconds
--
-- returns  what take.lua returns for a no

local sends = redis.call('ZRANGE', KEYS[1], '0', '-1')
local time = ARGV[1] and { ARGV[1], ARGV[2] } or redis.call('TIME')
return table.concat(sends) .. time[1] .. time[2]
