-- Adds the rows of Services to the rows '(other)' of their namespaces, in each of the given sums, and deletes the rows.
-- KEYS: sums
-- ARGV: number of counters, then the suffixes of the counters' fields; then per Service: its uid, the uid of the row '(other)'
-- Result: the number of deleted values
local counters = tonumber(ARGV[1])
local deleted = 0
for _, sum in ipairs(KEYS) do
  for arg = counters + 2, #ARGV, 2 do
    for counter = 2, counters + 1 do
      local field = ARGV[arg] .. ':' .. ARGV[counter]
      local value = redis.call('HGET', sum, field)
      if value then
        redis.call('HINCRBY', sum, ARGV[arg + 1] .. ':' .. ARGV[counter], value)
        deleted = deleted + redis.call('HDEL', sum, field)
      end
    end
  end
end
return deleted
