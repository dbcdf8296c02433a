-- What the scripts of all steps begin with, behind redisstore's record.lua.
--
-- KEYS[1]  the codes of one mailbox, in places of 22 bytes: 6 of milliseconds and 16 of
--          text. The first place is a receipt: until when it is good, and for which step.
--          The next are marks of codes that were made elsewhere and recorded: 6 bytes of 0,
--          so that they pass for expired where they are not known, 6 that say when the code
--          expires, and 10 of its hash. They stay until then, whatever becomes of the code.
--          In the others are the codes: when they expire, and their hashes, in the order
--          of the whole place

local place = 22
if #record % place > 0 then return answer('?') end
local receipt = sub(record, 1, place)
if record == '' then receipt = string.rep('\0', place) end

-- The marks, and where the first code stands that has not expired.
local first, marks = place + 1, ''
while first < #record and unpack('>I6', record, first) <= now do
  if unpack('>I6', record, first) == 0 and unpack('>I6', record, first + 6) > now then
    marks = marks .. sub(record, first, first + place - 1)
  end
  first = first + place
end

-- Until when the receipt, a mark or one of these codes matters. The codes are in order, so
-- the last is the last to expire.
local function matters(codes)
  local last = unpack('>I6', receipt)
  for at = 7, #marks, place do last = math.max(last, (unpack('>I6', marks, at))) end
  if codes ~= '' then last = math.max(last, (unpack('>I6', codes, #codes - place + 1))) end
  return last
end

-- Writes once more what is there, for a step that finds that it has been taken.
local function repeated() again(matters(sub(record, first))) end

-- Whether the step with these 16 bytes has been taken: its answer was lost, and it is
-- repeated.
local function taken(step)
  if now >= unpack('>I6', receipt) or sub(receipt, 7) ~= step then return false end
  repeated()
  return true
end

-- Keeps these codes.
local function keepCodes(codes)
  local last = matters(codes)
  if now >= last then return call('DEL', key) end
  keep(receipt .. marks .. codes, last)
end

-- Forgets the codes that expire by then and keeps a receipt, for a minute: longer than a step
-- is repeated.
local function forget(expires, step)
  while first < #record and unpack('>I6', record, first) <= expires do first = first + place end
  receipt = pack('>I6', now + 60000) .. step
  keepCodes(sub(record, first))
end

