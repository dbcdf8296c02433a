-- The beginning of each script: one step of an algorithm on the state of one key. The step is
-- that of the algorithm of package throttle, whose state this is. A refusal only reads.
--
-- KEYS[1]  the state
-- ARGV[1]  the step: take, peek, release, record or reset
-- ARGV[2]  the admissions, oldest first: each 6 bytes of milliseconds and 8 of id
-- ARGV[3]  do nothing from this moment on; empty: whenever
-- ARGV[4]  the parameters of the algorithm, 6 bytes each
--
-- returns  1 byte: 1 it was done, 2 it was done before, 0 it was not done, - it came too late;
--          6 bytes of the clock's milliseconds; the state before the step

local call, pack, unpack = redis.call, struct.pack, struct.unpack
local key, step, admissions, params = KEYS[1], ARGV[1], ARGV[2], ARGV[4]
local time = call('TIME')
local now = time[1] * 1000 + (time[2] - time[2] % 1000) / 1000
local stamp = pack('>I6', now)
if ARGV[3] ~= '' and now >= tonumber(ARGV[3]) then return '-' .. stamp end
