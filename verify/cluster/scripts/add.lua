-- Makes one more code right.
--
-- ARGV[1]  its hash
-- ARGV[2]  for how many milliseconds
--
-- returns  '+'

insert(ARGV[1], now + ARGV[2])
return answer('+')
