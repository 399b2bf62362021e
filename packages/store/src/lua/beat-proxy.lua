#!lua flags=allow-oom
-- Stores a heartbeat. The listener reports are stored in chunks. The caller sends only the chunks that have changed. Also restores the
-- node's incarnation number if a failover has lost it, so that no later incarnation gets the same number.
-- KEYS: proxy, proxies, lives
-- ARGV: time to live in ms; node; incarnation; state; expected root of the stored chunks ('' if all chunks are sent); then, if
--       chunks have changed: the new root, the digests of all chunks as JSON, and the index and text of each sent chunk
-- Result: 1 if the heartbeat was stored; 0 if the stored chunks have another root, so that the caller must send all chunks
local isComplete = ARGV[5] == ''
if not isComplete and redis.call('HGET', KEYS[1], 'root') ~= ARGV[5] then
  return 0
end
if isComplete then
  redis.call('DEL', KEYS[1])
end
redis.call('HSET', KEYS[1], 'state', ARGV[4])
if #ARGV > 5 then
  redis.call('HSET', KEYS[1], 'root', ARGV[6], 'digests', ARGV[7])
end
for i = 8, #ARGV, 2 do
  redis.call('HSET', KEYS[1], 'chunk:' .. ARGV[i], ARGV[i + 1])
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
if tonumber(redis.call('HGET', KEYS[3], ARGV[2]) or '0') < tonumber(ARGV[3]) then
  redis.call('HSET', KEYS[3], ARGV[2], ARGV[3])
end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
redis.call('ZADD', KEYS[2], string.format('%.0f', now), ARGV[3] .. ':' .. ARGV[2])
-- Keeps members for 20 times the time to live, because the clock of a new primary may be ahead or behind.
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now - 20 * tonumber(ARGV[1])))
return 1
