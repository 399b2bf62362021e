-- Gives out the number of a node's next life. Of a node that is not known here (new, or after a wipe) it begins at the
-- seconds of the clock, which is more than any number given out before: a life takes longer than a second.
-- KEYS: lives
-- ARGV: node, the least that it may be
-- Result: the number
local known = redis.call('HGET', KEYS[1], ARGV[1])
local life = known and tonumber(known) + 1 or tonumber(redis.call('TIME')[1])
life = math.max(life, tonumber(ARGV[2]))
redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f', life))
return life
