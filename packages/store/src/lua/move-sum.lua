-- Moves usage of Services from the sum of a minute, hour or day, which proxies of an earlier version write, to the series of the Services
-- and of their tenant.
-- KEYS: sum, reasons, block of the tenant's series, then per Service the block of its series
-- ARGV: the number of the point in the blocks; the end of the blocks' retention (seconds since the Unix epoch); number of counters, then
--       the suffixes of the counters' fields; then the uids of the Services
-- Result: the number of moved values
local offset, keptUntil, counters = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local moved = 0
for service = 1, #KEYS - 3 do
  local uid = ARGV[3 + counters + service]
  local counts = {}
  for counter = 4, 3 + counters do
    local field = uid .. ':' .. ARGV[counter]
    local value = redis.call('HGET', KEYS[1], field)
    if value then
      if tonumber(value) > 0 then
        local index = countIndexOf(ARGV[counter], KEYS[2])
        counts[index] = (counts[index] or 0) + tonumber(value)
      end
      moved = moved + redis.call('HDEL', KEYS[1], field)
    end
  end
  if next(counts) then
    for _, block in ipairs({ KEYS[3], KEYS[3 + service] }) do
      addToBlock(block, { [offset] = counts })
      redis.call('EXPIREAT', block, keptUntil)
    end
  end
end
return moved
