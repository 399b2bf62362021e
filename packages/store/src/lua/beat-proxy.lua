-- Keeps a heartbeat. The listeners lie beside it in chunks, of which only those are sent that are not here yet.
-- KEYS: proxy, proxies
-- ARGV: time to live in ms, member of `proxies`, state, root of the chunks that should be here (empty: all are sent), then, unless
-- these are still the ones: their new root, their digests as JSON, and for each that is sent its index and text
-- Result: 1; 0: the chunks of this root are not here, send them all
local whole = ARGV[4] == ''
if not whole and redis.call('HGET', KEYS[1], 'root') ~= ARGV[4] then
  return 0
end
if whole then
  redis.call('DEL', KEYS[1])
end
redis.call('HSET', KEYS[1], 'state', ARGV[3])
if #ARGV > 4 then
  redis.call('HSET', KEYS[1], 'root', ARGV[5], 'digests', ARGV[6])
end
for i = 7, #ARGV, 2 do
  redis.call('HSET', KEYS[1], 'chunk:' .. ARGV[i], ARGV[i + 1])
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
redis.call('ZADD', KEYS[2], string.format('%.0f', now), ARGV[2])
-- far older than the time to live: the clock of a new primary may differ
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now - 20 * tonumber(ARGV[1])))
return 1
