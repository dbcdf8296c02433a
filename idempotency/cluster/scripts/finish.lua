-- Keeps an answer, unless another has the lease. Of two answers the first stays.
--
-- ARGV[1]  the lease: its token and its fingerprint; and the answer
-- ARGV[2]  for how many milliseconds
--
-- returns  '+' kept, also before; '-' not kept

if live and not holds then return answer('-') end
if live and answered then
  again(expires)
else
  expires = now + ARGV[2]
  keep(lease .. pack('>I6', expires) .. sub(ARGV[1], ends), expires)
end
return answer('+')
