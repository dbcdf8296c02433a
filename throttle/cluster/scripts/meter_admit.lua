
-- What the scripts that decide end with, unless they have said no.
--
-- newHead  the head of the state from now on, with its length
-- first    where the oldest admission that it remembers begins
-- clock    when this one is
-- expires  until when the state matters
-- stays    whether that is as long as it did before: then the key expires when it did, which
--          the server knows and need not be told
-- sent     where the reservation stands if it was admitted before, and still counts
--
-- returns  what a no returns, and what was done: '+' admitted, '=' admitted before under this
--          reservation. With '=' the admissions stand behind the head. meter_begin.lua returns
--          '!' where it is too late for anything

local kept = expires - today
if kept < 0 then kept = 0 end
kept = kept + grace

if sent then
  -- The key is written to, so that a WAIT behind this call waits for the first write too.
  call('PEXPIRE', key, kept)
  return sub(state, 1, head) .. sub(state, remembered) .. seconds .. micros .. '='
end

-- A long state is changed where it is, if only as many are forgotten as one more leaves
-- behind. Else it is put together in one piece.
if elsewhere then stays = false end
if first < remembered then first = remembered end
local length = size - remembered + 1
local leaves = length < 1024 * 14 and 0 or 14
if length > 256 * 14 and first == remembered + leaves and #newHead == head and remembered < head + 128 * 14 then
  call('SETRANGE', key, '0', newHead)
  call('APPEND', key, pack('>I6', clock) .. id)
  if not stays then call('PEXPIRE', key, kept) end
elseif stays then
  call('SET', key, newHead .. sub(state, first) .. pack('>I6', clock) .. id, 'KEEPTTL')
else
  call('SET', key, newHead .. sub(state, first) .. pack('>I6', clock) .. id, 'PX', kept)
end
return saw .. '+'
