-- Deletes the table, private keys and changes, and opens the next epoch at revision 0 with an incomplete table.
-- KEYS: meta, table, changes, keys
-- ARGV: leader token; id of the position; the greatest epoch that the caller has seen
-- Result: {'published', epoch} or {'not-leader', current leader token}
local leader = redis.call('HGET', KEYS[1], 'leader') or '0'
if leader ~= ARGV[1] then
  return { 'not-leader', leader }
end
local epoch = math.max(tonumber(redis.call('HGET', KEYS[1], 'epoch') or '0'), tonumber(ARGV[3])) + 1
local text = string.format('%.0f', epoch)
redis.call('UNLINK', KEYS[2], KEYS[3], KEYS[4])
redis.call('HSET', KEYS[1], 'epoch', text, 'revision', '0', 'id', ARGV[2])
redis.call('HDEL', KEYS[1], 'complete', 'bytes', 'mark')
return { 'published', text }
