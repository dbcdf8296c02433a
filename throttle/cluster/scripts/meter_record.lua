-- Puts many sends on record that were admitted elsewhere, one after the other, in one step.
-- It stands behind the script that decides, which is the function decide here.
--
-- KEYS[1]  as in meter_begin.lua
-- ARGV[1]  the sends, oldest first, each as ARGV[1] of meter_begin.lua
-- ARGV[2]  and those behind it are as in meter_begin.lua
--
-- returns  what the last of them returned that was put on record, or else the last

local answer
for from = 1, #ARGV[1], 14 do
  local reply = decide({ string.sub(ARGV[1], from, from + 13), ARGV[2], ARGV[3], ARGV[4], ARGV[5] })
  local last = string.sub(reply, -1)
  if last == '!' then return reply end
  if not answer or last == '+' or last == '=' then answer = reply end
end
return answer
