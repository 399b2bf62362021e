-- Adds blocks of the series of a Service to blocks of another series, and deletes the blocks of the Service.
-- KEYS: per block: the block, the block to which its points are added
-- ARGV: none
-- Result: the number of deleted blocks
local deleted = 0
for key = 1, #KEYS, 2 do
  local points = redis.call('HGETALL', KEYS[key])
  if #points > 0 then
    local added = {}
    for index = 1, #points, 2 do
      added[points[index]] = unpackPoint(points[index + 1])
    end
    addToBlock(KEYS[key + 1], added)
    redis.call('EXPIREAT', KEYS[key + 1], redis.call('EXPIRETIME', KEYS[key]))
    deleted = deleted + redis.call('DEL', KEYS[key])
  end
end
return deleted
