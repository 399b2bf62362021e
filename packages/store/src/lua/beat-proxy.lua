-- Stores a heartbeat. The listener reports are stored in chunks. The caller sends only the chunks that have changed.
-- KEYS: proxy, proxies
-- ARGV: time to live in ms; member of `proxies`; state; expected root of the stored chunks ('' if all chunks are sent); then, if
--       chunks have changed: the new root, the digests of all chunks as JSON, and the index and text of each sent chunk
-- Result: 1 if the heartbeat was stored; 0 if the stored chunks have another root, so that the caller must send all chunks
local isComplete = ARGV[4] == ''
if not isComplete and redis.call('HGET', KEYS[1], 'root') ~= ARGV[4] then
  return 0
end
if isComplete then
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
-- Keeps members for 20 times the time to live, because the clock of a new primary may be ahead or behind.
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now - 20 * tonumber(ARGV[1])))
return 1
