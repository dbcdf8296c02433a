-- Ends a lease. What is left says for a minute who has ended it, longer than a step is
-- repeated.
--
-- ARGV[1]  the lease: its token and its fingerprint
-- ARGV[2]  16 bytes of this step's own
--
-- returns  '+' ended; '-' it has no lease

if record == ARGV[2] or live and holds and not answered then
  keep(ARGV[2], now + 60000)
  return answer('+')
end
return answer('-')
