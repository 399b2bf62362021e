-- Writes one revision (entries, private keys, change stream and position), if the caller is the leader and the stored table is at the
-- predecessor.
-- KEYS: meta, table, changes, keys
-- ARGV: leader token; epoch, revision and id of the predecessor; id; '1' if the table is complete at this revision; number of
--       revisions to keep; minimum of kept bytes of entries (at most twice as many are kept); time at which the cause of the change
--       was observed (milliseconds since the Unix epoch, '' if unknown); number of changed private keys; per key its entry id and text
--       ('' if deleted); per entry its id and encoded text ('' if deleted)
-- Result: {'published', revision}, {'not-leader', current leader token}, or
--         {'wrong-predecessor', epoch, revision, id, complete, leader} from meta, with false for an absent field
local meta = redis.call('HMGET', KEYS[1], 'epoch', 'revision', 'id', 'complete', 'leader')
if (meta[5] or '0') ~= ARGV[1] then
  return { 'not-leader', meta[5] or '0' }
end
if meta[1] ~= ARGV[2] or meta[2] ~= ARGV[3] or meta[3] ~= ARGV[4] then
  return { 'wrong-predecessor', unpack(meta, 1, 5) }
end
local revision = string.format('%.0f', tonumber(ARGV[3]) + 1)
local entries = 11 + 2 * tonumber(ARGV[10])
for i = 11, entries - 1, 2 do
  if ARGV[i + 1] == '' then
    redis.call('HDEL', KEYS[4], ARGV[i])
  else
    redis.call('HSET', KEYS[4], ARGV[i], ARGV[i + 1])
  end
end
local bytes = 0
for i = entries, #ARGV, 2 do
  bytes = bytes + #ARGV[i] + #ARGV[i + 1]
  if ARGV[i + 1] == '' then
    redis.call('HDEL', KEYS[2], ARGV[i])
  else
    redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1])
  end
end
redis.call('HSET', KEYS[1], 'revision', revision, 'id', ARGV[5])
if ARGV[6] == '1' then
  redis.call('HSET', KEYS[1], 'complete', revision)
end
redis.call('XADD', KEYS[3], 'MAXLEN', ARGV[7], revision .. '-0',
  'id', ARGV[5], 'predecessor', ARGV[4], 'epoch', ARGV[2], 'complete', ARGV[6], 'changed-at', ARGV[9],
  unpack(ARGV, entries))
-- Trims the stream by bytes too, because tenants determine the size of a revision. 10,000 revisions of the maximum size would take
-- gigabytes.
bytes = redis.call('HINCRBY', KEYS[1], 'bytes', bytes)
if bytes >= tonumber(ARGV[8]) then
  local mark = redis.call('HGET', KEYS[1], 'mark')
  if mark then
    redis.call('XTRIM', KEYS[3], 'MINID', mark .. '-0')
  end
  redis.call('HSET', KEYS[1], 'mark', revision, 'bytes', '0')
end
return { 'published', revision }
