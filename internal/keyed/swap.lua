-- Replaces a value, unless it has changed since it was read.
--
-- KEYS[1]  the key
-- ARGV[1]  the value that was read, empty for none
-- ARGV[2]  the next value, empty to remove it
-- ARGV[3]  when the next value expires, in milliseconds since 1970
-- returns  1 if it was replaced, 0 if it has changed

if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
if ARGV[2] == '' then
  redis.call('DEL', KEYS[1])
else
  redis.call('SET', KEYS[1], ARGV[2], 'PXAT', ARGV[3])
end
return 1
