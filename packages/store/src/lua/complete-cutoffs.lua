#!lua flags=allow-oom
-- Declares the list of suspensions complete, and forgets the recorded removals. Afterwards a suspension that is not listed is not in
-- force.
-- KEYS: cutoffs, cutoff-sequences, cutoff-meta, cutoff-changes
-- ARGV: id of the change; the greatest sequence that the caller has seen; number of stream entries to keep
-- Result: the new sequence
for _, uid in ipairs(redis.call('HKEYS', KEYS[2])) do
  if redis.call('HEXISTS', KEYS[1], uid) == 0 then
    redis.call('HDEL', KEYS[2], uid)
  end
end
local time = redis.call('TIME')
local clock = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local known = math.max(tonumber(redis.call('HGET', KEYS[3], 'sequence') or '0'), tonumber(ARGV[2]))
local sequence = string.format('%.0f', math.max(known + 1, clock))
redis.call('HSET', KEYS[3], 'complete', sequence, 'sequence', sequence, 'id', ARGV[1])
redis.call('XADD', KEYS[4], 'MAXLEN', ARGV[3], sequence .. '-0', 'complete', '1')
return tonumber(sequence)
