#!lua flags=no-writes
-- Runs several read commands at one moment. MULTI would do the same, but a Redis that has reached its maxmemory refuses MULTI.
-- KEYS: the key of each command
-- ARGV: per command: its name, the number of its arguments after the key, and these arguments
-- Result: the reply of each command
local replies, at = {}, 1
for index, key in ipairs(KEYS) do
  local last = at + 1 + tonumber(ARGV[at + 1])
  replies[index] = redis.call(ARGV[at], key, unpack(ARGV, at + 2, last))
  at = last + 1
end
return replies
