-- Says what a code is that somebody brings. A right one is right once: all codes are
-- forgotten for it. A wrong one only reads, unless others have expired.
--
-- ARGV[1]  its hash
-- ARGV[2]  16 bytes of this step's own
--
-- returns  '+' where it was right, '-' where it was not, and '0' where no code is on record

if taken(ARGV[2]) then return answer('+') end

-- All are looked at, and texts of one length are compared by where they lie in memory, so
-- how long it takes does not tell which code is right.
local right = false
for at = first, #record, place do
  right = sub(record, at + 6, at + place - 1) == ARGV[1] or right
end
if right then
  forget(math.huge, ARGV[2])
  return answer('+')
end
if first > place + #marks + 1 then keepCodes(sub(record, first)) end
return answer(first > #record and '0' or '-')
