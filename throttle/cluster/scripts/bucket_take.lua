-- Admits one send to a bucket that has room for it, or says no, in one step. A no reads
-- only.
--
-- KEYS[1], ARGV[2]  as in bucket_begin.lua

local again = sent
if left == 0 then sent = nil end
if left + window > room * window and not sent then return saw end

-- Once the bucket has been empty, the sends in it need not be remembered, unless
-- bucket_record.lua says so; else too many lose the oldest.
local keeps = 0
if left == 0 and (again or since > 0 or held == 0) then
  since, before = clock, 0
else
  keeps = held < most and held or most - 1
  if held > keeps then
    local behind = remembered + (held - keeps) * 14
    local lost = brief and call('GETRANGE', key, remembered - 1, behind - 2) or sub(state, remembered, behind - 1)
    for from = 1, #lost, 14 do
      local came = unpack('>I6', lost, from)
      since, before = came, drained(before, came - since) + window
    end
  end
end
local newHead = pack('>I2I6I7I6I7', 26, clock, left + window, since, before)
local expires, stays = sent and at + drain(level) or clock + drain(left + window), false
