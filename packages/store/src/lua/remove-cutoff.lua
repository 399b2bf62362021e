-- Removes a suspension. While the list is incomplete, also stores the suspension's uid as removed, because a suspension that is
-- missing in an incomplete list may be in force.
-- KEYS: cutoffs, cutoffs-removed, cutoff-meta, cutoff-changes
-- ARGV: uid; id of the change; the greatest sequence that the caller has seen; number of stream entries to keep
-- Result: the new sequence; 0 if nothing changed
local changes = redis.call('HDEL', KEYS[1], ARGV[1])
if redis.call('HEXISTS', KEYS[3], 'complete') == 0 then
  changes = changes + redis.call('SADD', KEYS[2], ARGV[1])
end
if changes == 0 then
  return 0
end
local known = math.max(tonumber(redis.call('HGET', KEYS[3], 'sequence') or '0'), tonumber(ARGV[3]))
local sequence = string.format('%.0f', known + 1)
redis.call('HSET', KEYS[3], 'sequence', sequence, 'id', ARGV[2])
redis.call('XADD', KEYS[4], 'MAXLEN', ARGV[4], sequence .. '-0', 'uid', ARGV[1])
return known + 1
