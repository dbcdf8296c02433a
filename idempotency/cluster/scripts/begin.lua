-- Gives a lease, if there is none and no answer.
--
-- ARGV[1]  the lease: its token and its fingerprint
-- ARGV[2]  for how many milliseconds
--
-- returns  '+' given, also before under this token; 'x' the fingerprint is another; '='
--          and the answer; '-' and 6 bytes of how many milliseconds another lease lasts

if not live then
  keep(lease .. pack('>I6', now + ARGV[2]), now + ARGV[2])
  return answer('+')
end
if sub(record, body, ends - 1) ~= sub(lease, body) then return answer('x') end
if answered then return answer('=', sub(record, head + 1)) end
if not holds then return answer('-', pack('>I6', expires - now)) end
again(expires)
return answer('+')
