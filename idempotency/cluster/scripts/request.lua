-- What the scripts of all steps begin with, behind record.lua.
--
-- KEYS[1]  the record of one request: 16 bytes of token, 32 of fingerprint, 6 of when it
--          ends, and the answer if there is one; or the 16 bytes of the step that has
--          abandoned it

local body, ends, head = 17, 49, 54
local expires = 0
if #record >= head then
  expires = unpack('>I6', record, ends)
elseif record ~= '' and #record ~= 16 then
  return answer('?')
end
local live = now < expires
local answered = #record > head

-- The lease that the first word begins with.
local lease = sub(ARGV[1], 1, ends - 1)
local holds = sub(record, 1, body - 1) == sub(lease, 1, body - 1)

