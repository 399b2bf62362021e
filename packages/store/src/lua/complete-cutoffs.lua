-- Marks the list of suspensions as complete. Afterwards a suspension that is not listed is not in force.
-- KEYS: cutoffs-removed, cutoff-meta, cutoff-changes
-- ARGV: id of the change; the greatest sequence that the caller has seen; number of stream entries to keep
-- Result: the new sequence; 0 if nothing changed
if redis.call('HEXISTS', KEYS[2], 'complete') == 1 then
  return 0
end
redis.call('UNLINK', KEYS[1])
local known = math.max(tonumber(redis.call('HGET', KEYS[2], 'sequence') or '0'), tonumber(ARGV[2]))
local sequence = string.format('%.0f', known + 1)
redis.call('HSET', KEYS[2], 'complete', '1', 'sequence', sequence, 'id', ARGV[1])
redis.call('XADD', KEYS[3], 'MAXLEN', ARGV[3], sequence .. '-0', 'complete', '1')
return known + 1
