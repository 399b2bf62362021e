#!lua flags=allow-oom
-- Returns a leader token greater than all earlier tokens.
-- KEYS: meta
-- ARGV: the greatest token that the caller has seen, so that tokens keep increasing after a wipe
-- Result: the token
local known = math.max(tonumber(redis.call('HGET', KEYS[1], 'leader') or '0'), tonumber(ARGV[1]))
redis.call('HSET', KEYS[1], 'leader', string.format('%.0f', known + 1))
return known + 1
