-- Makes a code right that was made elsewhere, unless this was done before: what has become
-- of it since then, stays so.
--
-- ARGV[1]  its hash
-- ARGV[2]  when it expires
--
-- returns  '+', or '0' where it has expired

local expires = tonumber(ARGV[2])
if expires <= now then return answer('0') end
local mark = pack('>I6I6', 0, expires) .. sub(ARGV[1], 1, 10)
for at = 1, #marks, place do
  if sub(marks, at, at + place - 1) == mark then
    repeated()
    return answer('+')
  end
end
marks = sub(marks .. mark, -most * place) -- as many as there are codes
insert(ARGV[1], expires)
return answer('+')
