-- Replaces a value if it is the one that the next was made of. Without a next value it only reads.
--
-- KEYS[1]  the key
-- ARGV[1]  the value that the next was made of, empty for none
-- ARGV[2]  the next value, empty to remove it
-- ARGV[3]  when the next value expires, in milliseconds since 1970
-- ARGV[4]  the moment for which it was made: the clock must have reached it
-- ARGV[5]  do nothing from this moment on; empty: whenever
-- returns  1 byte: 1 it was replaced, 0 it was not; 6 bytes of the clock's milliseconds; the value before

local call, time = redis.call, redis.call('TIME')
local now = time[1] * 1000 + (time[2] - time[2] % 1000) / 1000
local before = call('GET', KEYS[1]) or ''
local answer = struct.pack('>I6', now) .. before
local unfit = before ~= ARGV[1] or now < tonumber(ARGV[4]) or ARGV[5] ~= '' and now >= tonumber(ARGV[5])
if unfit then return '0' .. answer end
if ARGV[2] == '' then
  call('DEL', KEYS[1])
else
  call('SET', KEYS[1], ARGV[2], 'PXAT', ARGV[3])
end
return '1' .. answer
