-- Forgets the codes that expire by then.
--
-- ARGV[1]  when that is
-- ARGV[2]  16 bytes of this step's own
--
-- returns  '+'

if not taken(ARGV[2]) then forget(tonumber(ARGV[1]), ARGV[2]) end
return answer('+')
