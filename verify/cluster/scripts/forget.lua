-- Forgets all codes.
--
-- ARGV[1]  unused
-- ARGV[2]  16 bytes of this step's own
--
-- returns  '+'

if not taken(ARGV[2]) then forget(ARGV[2]) end
return answer('+')
