-- Gives out a leader token greater than every one before.
-- KEYS: meta
-- ARGV: the greatest token that the caller knows of (a wipe does not make them small again)
-- Result: the token
local known = math.max(tonumber(redis.call('HGET', KEYS[1], 'leader') or '0'), tonumber(ARGV[1]))
redis.call('HSET', KEYS[1], 'leader', string.format('%.0f', known + 1))
return known + 1
