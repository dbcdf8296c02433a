-- Keeps a state with a new head, without its length, and these of its admissions. A long one
-- keeps its filter too: what it says of those that are gone is only that they may be there.
local function keep(newHead, rest, expires)
  local length, between = #newHead, ''
  if long and #rest >= 128 * 14 then
    length = length + 32768
    between = pack('>I2I2I2', added, 0, #rest / 14) .. sub(state, head + 7, head + 4102)
  end
  call('SET', key, pack('>I2', length) .. newHead .. between .. rest, 'PX', math.max(0, expires - now) + grace)
end

