-- Removes a suspension, and keeps the sequence of the removal until the list is next declared complete. In a list that was never
-- declared complete, also records the removal of a suspension that is not listed, because this suspension may be in force.
-- KEYS: cutoffs, cutoff-sequences, cutoff-meta, cutoff-changes
-- ARGV: uid; id of the change; the greatest sequence that the caller has seen; number of stream entries to keep
-- Result: the new sequence; 0 if nothing changed
local isListed = redis.call('HDEL', KEYS[1], ARGV[1]) == 1
if not isListed then
  local isRecorded = redis.call('HEXISTS', KEYS[2], ARGV[1]) == 1
  if isRecorded or redis.call('HEXISTS', KEYS[3], 'complete') == 1 then
    return 0
  end
end
local time = redis.call('TIME')
local clock = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local known = math.max(tonumber(redis.call('HGET', KEYS[3], 'sequence') or '0'), tonumber(ARGV[3]))
local sequence = string.format('%.0f', math.max(known + 1, clock))
redis.call('HSET', KEYS[2], ARGV[1], sequence)
redis.call('HSET', KEYS[3], 'sequence', sequence, 'id', ARGV[2])
redis.call('XADD', KEYS[4], 'MAXLEN', ARGV[4], sequence .. '-0', 'uid', ARGV[1])
return tonumber(sequence)
