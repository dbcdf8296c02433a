-- Takes one code back. One that is not there costs no write.
--
-- ARGV[1]  its hash
-- ARGV[2]  unused
--
-- returns  '+', or '0' where there was nothing to change

local codes = {}
for at = first, #record, place do
  local code = sub(record, at, at + place - 1)
  if sub(code, 7) ~= ARGV[1] then codes[#codes + 1] = code end
end
if #codes == math.max(0, (#record - #marks) / place - 1) then return answer('0') end
keepCodes(table.concat(codes))
return answer('+')
