-- What the scripts end with that meter_record_begin.lua begins.
--
-- record   puts one on record, as of so many milliseconds, and says '+'; or '=' where it was on
--          record before, and nothing where it counts no more or finds no room. clock is the
--          moment that counts
-- newHead  is the head of the state from now on
-- expires  is until when it matters
--
-- returns  no head, the clock, and '+' or '=', as meter_admit.lua has them, of any of them

local did = ''
for from = 1, #sends, 14 do
  local id, when = unpack('>c8I6', sends, from)
  local clock = math.max(now, at)
  local one = record(id, clock - (now - math.min(now, when)), clock)
  if one == '+' or did == '' and one then did = one end
end

-- An hour longer than it matters, for the sends of its time that are to come. The next send
-- makes it long where it has to be; and where nothing is new it is written to all the same, so
-- that a WAIT behind this call waits for the first write too.
local text = newHead()
local kept = math.max(0, expires() - now) + 3600000
if did == '+' then
  local texts = { pack('>I2', #text), text }
  for i = 1, #ids do texts[i + 2] = pack('>I6c8', came[i], ids[i]) end
  call('SET', key, table.concat(texts), 'PX', kept)
elseif did == '=' then
  call('PEXPIRE', key, kept)
end
return '\0\0' .. seconds .. micros .. did
