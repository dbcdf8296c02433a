-- Admits one send to a bucket that has room for it, or says no, in one step. A no reads
-- only.
--
-- KEYS[1], ARGV[2]  as in bucket_begin.lua
--
-- returns  what fixed_window_take.lua returns

if left > 0 and find() then return again(at + drain(level)) end
if left + window > room * window then return no() end

-- Once the bucket has been empty, the sends in it need not be remembered; else too many
-- lose the oldest.
local first = remembered
if left == 0 then
  since, before, first = clock, 0, #state + 1
end
while (#state + 1 - first) / 14 >= most do
  local sent = unpack('>I6', state, first)
  since, before, first = sent, drained(before, sent - since) + window, first + 14
end
add(pack('>I6I7I6I7', clock, left + window, since, before),
  first, pack('>I6', clock) .. id, clock + drain(left + window))
return yes()
