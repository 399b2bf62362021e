-- Returns the number of a node's next incarnation. If the node is new, or unknown after a wipe, the number is the clock in seconds.
-- The clock exceeds every earlier number, because an incarnation lasts longer than a second.
-- KEYS: lives
-- ARGV: node; minimum of the returned number
-- Result: the number
local known = redis.call('HGET', KEYS[1], ARGV[1])
local life = known and tonumber(known) + 1 or tonumber(redis.call('TIME')[1])
life = math.max(life, tonumber(ARGV[2]))
redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f', life))
return life
