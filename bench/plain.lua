-- A sliding window as it is commonly written, with tiers: the caller's clock, pruned
-- before it is asked, the longest tier first, and 0 or 1 for an answer. It is here to
-- be measured, not to be used.
--
-- KEYS[1]  the sends of one mailbox: a sorted set of milliseconds
-- ARGV[1]  the caller's clock
-- ARGV[2]  a member that is unlike all others
-- ARGV[3…] limit and window of each tier, the longest first

local now = tonumber(ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - tonumber(ARGV[4]))
for tier = 3, #ARGV, 2 do
  local used = redis.call('ZCOUNT', KEYS[1], '(' .. (now - tonumber(ARGV[tier + 1])), '+inf')
  if used >= tonumber(ARGV[tier]) then return 0 end
end
redis.call('ZADD', KEYS[1], now, ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return 1
