#!lua flags=allow-oom
-- Forgets nodes that have been gone for long. The ledger refuses what these nodes may still report, because their bases are deleted:
-- it accepts no incarnation of an unknown node that began before `floor`.
-- KEYS: folded, nodes, reported, lives, gone nodes, then the bases of each node
-- ARGV: floor (seconds since the Unix epoch); then the nodes
-- Result: 1
local floor = math.max(tonumber(redis.call('HGET', KEYS[1], '') or '0'), tonumber(ARGV[1]))
redis.call('HSET', KEYS[1], '', string.format('%.0f', floor))
local isForgotten = {}
for i = 2, #ARGV do
  -- A proxy may have started on the node since the caller looked.
  if tonumber(redis.call('HGET', KEYS[4], ARGV[i]) or '0') <= floor then
    isForgotten[ARGV[i]] = true
    redis.call('UNLINK', KEYS[i + 4])
    redis.call('HDEL', KEYS[1], ARGV[i])
    redis.call('SREM', KEYS[2], ARGV[i])
    redis.call('HDEL', KEYS[4], ARGV[i])
    redis.call('HDEL', KEYS[5], ARGV[i])
  end
end
for _, incarnation in ipairs(redis.call('SMEMBERS', KEYS[3])) do
  if isForgotten[string.match(incarnation, '/(.*)$')] then
    redis.call('SREM', KEYS[3], incarnation)
  end
end
return 1
