-- The beginning of each script: one step of an algorithm on the state of one key. The step is
-- that of the algorithm of package throttle, whose state this is. A refusal only reads.
--
-- KEYS[1]  the state
-- ARGV[1]  the step: take, peek, release, record or reset
-- ARGV[2]  the admissions, oldest first: each 6 bytes of milliseconds and 8 of id
-- ARGV[3]  do nothing after this moment; 0: whenever
-- ARGV[4]  the clock of a test; 0: the server's
-- ARGV[5]  and those behind it are the parameters of the algorithm
--
-- returns  1 it was done, 2 it was done before, 0 it was not done, -1 it came too late;
--          the state before the step; the clock

local call, pack, unpack = redis.call, struct.pack, struct.unpack
local key, admissions = KEYS[1], ARGV[2]
local time = call('TIME')
local server = time[1] * 1000 + math.floor(time[2] / 1000)
local now, shift = server, 0
if ARGV[4] ~= '0' then
  now = tonumber(ARGV[4])
  shift = server - now + 3600000 -- how much later a record expires: this clock may stand still
end
if ARGV[3] ~= '0' and now > tonumber(ARGV[3]) then return {-1, '', now} end

local steps = {
  peek = function() return 0 end,
  reset = function() return call('DEL', key) end,
}

-- The moment and the id of each admission, as an iterator.
local function each()
  local next = 1
  return function()
    if next > #admissions then return nil end
    local at, id
    at, id, next = unpack('>I6c8', admissions, next)
    return at, id
  end
end

local function keep(text, expires) call('SET', key, text, 'PXAT', expires + shift) end

