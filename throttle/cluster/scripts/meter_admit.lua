
-- What the scripts that decide end with, unless they have said no.
--
-- newHead  the head of the state from now on, with its length
-- keeps    how many of the admissions before this one it remembers, the newest of them
-- clock    when this one is
-- expires  until when the state matters
-- stays    whether that is as long as it did before: then the key expires when it did, which
--          the server knows and need not be told
-- sent     where the reservation stands if it was admitted before, and still counts
--
-- returns  what a no returns, and what was done: '+' admitted, '=' admitted before under this
--          reservation. With '=' the admissions stand behind the head. meter_begin.lua returns
--          '!' where it is too late for anything

local kept = expires - now
if kept < 0 then kept = 0 end
kept = kept + grace

if sent then
  -- The key is written to, so that a WAIT behind this call waits for the first write too.
  call('PEXPIRE', key, kept)
  return sub(state, 1, head) .. sub(state, remembered) .. seconds .. micros .. '='
end

local admission, forgets = pack('>I6c8', clock, id), held - keeps
long = long and keeps >= 127

-- A long state is changed where it is, until its filter says yes too often, or much of it is
-- forgotten.
if long and added < 1024 and gone + forgets <= 512 and #newHead == head then
  call('SETRANGE', key, '2', sub(newHead, 3) .. pack('>I2I2I2', added + 1, gone + forgets, keeps + 1))
  if brief then call('SETRANGE', key, place, pack('>I4', word)) end
  call('APPEND', key, admission)
  if not stays then call('PEXPIRE', key, kept) end
  return saw .. '+'
end

-- Else it is put together in one piece.
local rest = admission
if keeps > 0 then
  if brief then state = call('GET', key) end
  rest = sub(state, remembered + forgets * 14) .. admission
end

if long or keeps >= 255 then
  local filter
  if long and added < 1024 then
    added = added + 1
    filter = sub(state, head + 7, place) .. pack('>I4', word) .. sub(state, place + 5, head + 4102)
  else
    local words = {}
    for nth = 0, 1023 do words[nth] = 0 end
    for from = 7, #rest, 14 do
      -- As in meter_begin.lua.
      local x, y = unpack('>I4I4', rest, from)
      local mixed = (x * 40503 + y * 30011) % 1048573
      local nth = mixed % 1024
      local bits = (mixed - nth) / 1024
      local low = bits % 32
      local one, other = 2 ^ low, 2 ^ ((bits - low) / 32)
      local word = words[nth]
      if word % (2 * one) < one then word = word + one end
      if word % (2 * other) < other then word = word + other end
      words[nth] = word
    end
    for nth = 0, 1023 do words[nth] = pack('>I4', words[nth]) end
    added, filter = 0, table.concat(words, '', 0, 1023)
  end
  newHead = pack('>I2', #newHead - 2 + 32768) .. sub(newHead, 3) .. pack('>I2I2I2', added, 0, keeps + 1) .. filter
end

if stays then
  call('SET', key, newHead .. rest, 'KEEPTTL')
else
  call('SET', key, newHead .. rest, 'PX', kept)
end
return saw .. '+'
