-- Gives one admission back.
--
-- KEYS[1]  the sends of one mailbox, as take.lua writes them
-- ARGV[1]  the reservation
--
-- returns  how many were given back, 0 or 1

for _, send in ipairs(redis.call('ZRANGE', KEYS[1], '0', '-1')) do
  if string.sub(send, 7) == ARGV[1] then return redis.call('ZREM', KEYS[1], send) end
end
return 0
