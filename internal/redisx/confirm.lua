-- Writes to a key without changing it. WAIT waits for the last write of its connection, and so for all earlier writes.
--
-- KEYS[1]  the key; if it is there, it expires

local left = redis.call('PTTL', KEYS[1])
if left > 0 then
  redis.call('PEXPIRE', KEYS[1], left)
else
  redis.call('SET', KEYS[1], '')
  redis.call('DEL', KEYS[1])
end
return 1
