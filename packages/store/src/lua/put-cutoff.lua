-- Adds or replaces a suspension. An identical suspension changes nothing.
-- KEYS: cutoffs, cutoffs-removed, cutoff-meta, cutoff-changes
-- ARGV: uid; encoded suspension; id of the change; the greatest sequence that the caller has seen; number of stream entries to keep
-- Result: the new sequence; 0 if nothing changed
local isKnown = redis.call('HGET', KEYS[1], ARGV[1]) == ARGV[2]
local wasRemoved = redis.call('SREM', KEYS[2], ARGV[1]) == 1
if isKnown and not wasRemoved then
  return 0
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
local known = math.max(tonumber(redis.call('HGET', KEYS[3], 'sequence') or '0'), tonumber(ARGV[4]))
local sequence = string.format('%.0f', known + 1)
redis.call('HSET', KEYS[3], 'sequence', sequence, 'id', ARGV[3])
redis.call('XADD', KEYS[4], 'MAXLEN', ARGV[5], sequence .. '-0', 'uid', ARGV[1])
return known + 1
