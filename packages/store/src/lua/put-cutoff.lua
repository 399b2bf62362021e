#!lua flags=allow-oom
-- Adds or replaces a suspension, and records it in the audit trail. An identical suspension changes nothing.
-- KEYS: cutoffs, cutoff-sequences, cutoff-meta, cutoff-changes, cutoff-audit
-- ARGV: uid; encoded suspension; id of the change; the greatest sequence that the caller has seen; number of stream entries to keep;
--       uid of the stored suspension that this suspension adopts and that is not recorded again, or ''; how long the audit trail keeps
--       records, in milliseconds; the most records of the audit trail
-- Result: the new sequence; 0 if nothing changed
if redis.call('HGET', KEYS[1], ARGV[1]) == ARGV[2] then
  return 0
end
local time = redis.call('TIME')
local clock = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local known = math.max(tonumber(redis.call('HGET', KEYS[3], 'sequence') or '0'), tonumber(ARGV[4]))
local sequence = string.format('%.0f', math.max(known + 1, clock))
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('HSET', KEYS[2], ARGV[1], sequence)
redis.call('HSET', KEYS[3], 'sequence', sequence, 'id', ARGV[3])
redis.call('XADD', KEYS[4], 'MAXLEN', ARGV[5], sequence .. '-0', 'uid', ARGV[1])
if ARGV[6] == '' or redis.call('HEXISTS', KEYS[1], ARGV[6]) == 0 then
  local oldest = string.format('%.0f', math.max(clock - tonumber(ARGV[7]), 0))
  redis.call('XADD', KEYS[5], 'MINID', oldest, '*', 'suspension', ARGV[2], 'release', '')
  redis.call('XTRIM', KEYS[5], 'MAXLEN', ARGV[8])
end
return tonumber(sequence)
