#!lua flags=allow-oom
-- Returns the number of a node's next incarnation: the clock in seconds, but at least one more than the last number. An incarnation lasts
-- longer than a second, so the clock exceeds every earlier number, even the numbers that a wipe or a failover has lost.
-- KEYS: lives
-- ARGV: node; minimum of the returned number
-- Result: the number
local known = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or '0')
local life = math.max(known + 1, tonumber(redis.call('TIME')[1]), tonumber(ARGV[2]))
redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f', life))
return life
