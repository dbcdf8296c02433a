-- Reads the changes of the suppression list after one, in order.
--
-- KEYS[1]  the hash of write.lua
-- ARGV[1]  the number of a change
-- ARGV[2]  how many to read
-- returns  the number of the last change of all and of the last one here, then fields and values in turn

local found = redis.call('ZRANGE', KEYS[1] .. ':changes', '(' .. ARGV[1], '+inf', 'BYSCORE', 'LIMIT', 0, ARGV[2], 'WITHSCORES')
local reply = {redis.call('HGET', KEYS[1], '') or '0', found[#found] or ARGV[1]}
local fields = {}
for i = 1, #found, 2 do fields[#fields + 1] = found[i] end
if #fields == 0 then return reply end
local values = redis.call('HMGET', KEYS[1], unpack(fields))
for i, field in ipairs(fields) do
  reply[#reply + 1] = field
  reply[#reply + 1] = values[i] or ''
end
return reply
