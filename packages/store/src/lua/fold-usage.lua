#!lua flags=allow-oom
-- Makes the ledger refuse reports of an incarnation and of lower incarnations of the node, and deletes the bases of these
-- incarnations.
-- KEYS: folded, bases of the node, reported
-- ARGV: node; incarnation
-- Result: the number of deleted values
local folded = math.max(tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or ARGV[2]), tonumber(ARGV[2]))
redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f', folded))
local deleted = 0
for _, field in ipairs(redis.call('HKEYS', KEYS[2])) do
  if tonumber(string.match(field, '^%d+')) <= folded then
    deleted = deleted + redis.call('HDEL', KEYS[2], field)
  end
end
for _, incarnation in ipairs(redis.call('SMEMBERS', KEYS[3])) do
  local life, node = string.match(incarnation, '^(%d+)/(.*)$')
  if node == ARGV[1] and tonumber(life) <= folded then
    redis.call('SREM', KEYS[3], incarnation)
  end
end
return deleted
