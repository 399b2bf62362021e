#!lua flags=allow-oom
-- Removes a suspension, and keeps the sequence of the removal until the list is next declared complete. In a list that was never
-- declared complete, also records the removal of a suspension that is not listed, because this suspension may be in force.
-- Records the release in the audit trail if the suspension was listed, or if a user released it.
-- KEYS: cutoffs, cutoff-sequences, cutoff-meta, cutoff-changes, cutoff-audit
-- ARGV: uid; id of the change; the greatest sequence that the caller has seen; number of stream entries to keep; encoded suspension;
--       release as JSON, or '' if the release is not recorded; '1' if a user released it; how long the audit trail keeps records, in
--       milliseconds; the most records of the audit trail
-- Result: the new sequence; 0 if nothing changed
local isListed = redis.call('HDEL', KEYS[1], ARGV[1]) == 1
local time = redis.call('TIME')
local clock = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
if ARGV[6] ~= '' and (isListed or ARGV[7] == '1') then
  local oldest = string.format('%.0f', math.max(clock - tonumber(ARGV[8]), 0))
  redis.call('XADD', KEYS[5], 'MINID', oldest, '*', 'suspension', ARGV[5], 'release', ARGV[6])
  redis.call('XTRIM', KEYS[5], 'MAXLEN', ARGV[9])
end
if not isListed then
  local isRecorded = redis.call('HEXISTS', KEYS[2], ARGV[1]) == 1
  if isRecorded or redis.call('HEXISTS', KEYS[3], 'complete') == 1 then
    return 0
  end
end
local known = math.max(tonumber(redis.call('HGET', KEYS[3], 'sequence') or '0'), tonumber(ARGV[3]))
local sequence = string.format('%.0f', math.max(known + 1, clock))
redis.call('HSET', KEYS[2], ARGV[1], sequence)
redis.call('HSET', KEYS[3], 'sequence', sequence, 'id', ARGV[2])
redis.call('XADD', KEYS[4], 'MAXLEN', ARGV[4], sequence .. '-0', 'uid', ARGV[1])
return tonumber(sequence)
