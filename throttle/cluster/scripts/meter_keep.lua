-- Keeps a state with a new head, without its length, and these of its admissions.
local function keep(newHead, held, expires)
  call('SET', key, pack('>I2', #newHead) .. newHead .. held, 'PX', math.max(0, expires - today) + grace)
end

