-- Refuses a life and all lower ones of the node from now on, and forgets their bases.
-- KEYS: folded, bases of the node
-- ARGV: node, life
-- Result: the number of values forgotten
local folded = math.max(tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or ARGV[2]), tonumber(ARGV[2]))
redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f', folded))
local forgotten = 0
for _, field in ipairs(redis.call('HKEYS', KEYS[2])) do
  if tonumber(string.match(field, '^%d+')) <= folded then
    forgotten = forgotten + redis.call('HDEL', KEYS[2], field)
  end
end
return forgotten
