-- Adds the rows of Services to rows of other Services, in each of the given sums, and deletes the rows.
-- KEYS: sums
-- ARGV: per Service: its uid, the uid of other Services
-- Result: the number of deleted values
local deleted = 0
for _, sum in ipairs(KEYS) do
  for arg = 1, #ARGV, 2 do
    for _, counter in ipairs({ 'r', 's', 'c', 'q', 'q2', 'q3', 'q4', 'q5', 'qn' }) do
      local field = ARGV[arg] .. ':' .. counter
      local value = redis.call('HGET', sum, field)
      if value then
        redis.call('HINCRBY', sum, ARGV[arg + 1] .. ':' .. counter, value)
        deleted = deleted + redis.call('HDEL', sum, field)
      end
    end
  end
end
return deleted
