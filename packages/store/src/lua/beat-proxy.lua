-- Keeps a heartbeat. The listeners, which are long and seldom change, are sent only when they are not here yet.
-- KEYS: proxy, proxies
-- ARGV: time to live in ms, member of `proxies`, state, digest of the listeners, then the listeners unless left out
-- Result: 1; 0: the listeners of this digest are not here, send them too
if #ARGV < 5 and redis.call('HGET', KEYS[1], 'digest') ~= ARGV[4] then
  return 0
end
redis.call('HSET', KEYS[1], 'state', ARGV[3])
if #ARGV == 5 then
  redis.call('HSET', KEYS[1], 'digest', ARGV[4], 'listeners', ARGV[5])
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
redis.call('ZADD', KEYS[2], string.format('%.0f', now), ARGV[2])
-- far older than the time to live: the clock of a new primary may differ
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now - 20 * tonumber(ARGV[1])))
return 1
