-- What the scripts go on with that make one more code right.

local most = 16 -- codes of a mailbox

-- By their bytes: how Lua compares texts depends on the server's language.
local function before(a, b)
  for i = 1, place do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then return x < y end
  end
  return false
end

local function insert(hash, expires)
  local codes = {}
  for at = first, #record, place do
    local code = sub(record, at, at + place - 1)
    if sub(code, 7) == hash then
      expires = math.max(expires, (unpack('>I6', code)))
    else
      codes[#codes + 1] = code
    end
  end
  if #codes >= most then table.remove(codes, 1) end

  local added, at = pack('>I6', expires) .. hash, 1
  while codes[at] and before(codes[at], added) do at = at + 1 end
  table.insert(codes, at, added)
  keepCodes(table.concat(codes))
end

