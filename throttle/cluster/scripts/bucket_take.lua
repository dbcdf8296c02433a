-- Admits one send to a bucket that has room for it, or says no, in one step. A no reads
-- only.
--
-- KEYS[1], ARGV[2]  as in bucket_begin.lua

if left == 0 then sent = nil end
if left + window > room * window and not sent then return saw end

-- Once the bucket has been empty, the sends in it need not be remembered; else too many
-- lose the oldest.
local first = remembered
if left == 0 then
  since, before, first = clock, 0, size + 1
end
while (size + 1 - first) / 14 >= most do
  local came = unpack('>I6', state, first)
  since, before, first = came, drained(before, came - since) + window, first + 14
end
local newHead = pack('>I2I6I7I6I7', 26, clock, left + window, since, before)
local expires, stays = sent and at + drain(level) or clock + drain(left + window), false
