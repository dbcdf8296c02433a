-- What the scripts of all steps begin with, behind record.lua.
--
-- KEYS[1]  the codes of one mailbox, in places of 22 bytes: 6 of milliseconds and 16 of
--          text. The first place is a receipt: until when it is good, and for which step.
--          In the others are the codes: when they expire, and their hashes, in the order
--          of the whole place

local place = 22
if #record % place > 0 then return answer('?') end
local receipt = sub(record, 1, place)
if record == '' then receipt = string.rep('\0', place) end

-- Whether the step with these 16 bytes has been taken: its answer was lost, and it is
-- repeated.
local function taken(step)
  local good = unpack('>I6', receipt)
  if now >= good or sub(receipt, 7) ~= step then return false end
  again(math.max(good, (unpack('>I6', record, #record - place + 1))))
  return true
end

-- Where the first code stands that has not expired.
local first = place + 1
while first < #record and unpack('>I6', record, first) <= now do first = first + place end

-- Keeps these codes. They are in order, so the last is the last to expire.
local function keepCodes(codes)
  local good = unpack('>I6', receipt)
  if codes == '' and now >= good then return call('DEL', key) end
  if codes ~= '' then good = math.max(good, (unpack('>I6', codes, #codes - place + 1))) end
  keep(receipt .. codes, good)
end

-- Forgets all codes and keeps a receipt, for a minute: longer than a step is repeated.
local function forget(step)
  receipt = pack('>I6', now + 60000) .. step
  keepCodes('')
end

