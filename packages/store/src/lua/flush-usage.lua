-- Adds the increase of each counter over its last seen cumulative value (the base) to the month of each point of the report, and to its
-- minute, hour and day in the series of the Service and of the tenant. A repeated report has no increase and adds nothing. A base
-- '(other)', which a seed may contain (see UsageBase), is subtracted from the increases of the Services of its namespace and tenant until
-- the base is used up. Differences of integers up to 2^53 are exact in Lua. '%.0f' formats all of their digits; tostring would round.
-- KEYS: open, folded, bases of the node, names, tenants, nodes, months, reported, reasons, then sums of months and blocks of series
-- ARGV: node; incarnation; 1 if this call ends a full report, else 0; number of months, then the months; per sum and block the end of
--       its retention (seconds since the Unix epoch, '' if kept forever); then per slot: service, tenant, '<namespace>/<name>', number of
--       points; per point: its minute, the indexes in KEYS of the sum of its month, of the blocks of its minute, hour and day in the
--       series of the Service, and of the same blocks in the series of the tenant; the cumulative received bytes, sent bytes,
--       connections, requests, and requests with the code classes 2xx, 3xx, 4xx, 5xx and none, the number of reasons, and per reason:
--       the reason and the cumulative refusals
-- Result: 'accepted', 'seeding' or 'folded'
if redis.call('EXISTS', KEYS[1]) == 0 then
  return 'seeding'
end
local folded = redis.call('HGET', KEYS[2], ARGV[1])
if not folded and redis.call('SISMEMBER', KEYS[6], ARGV[1]) == 0 then
  -- The ledger may have forgotten the node, with the bases of its incarnations.
  folded = redis.call('HGET', KEYS[2], '')
end
if folded and tonumber(ARGV[2]) <= tonumber(folded) then
  return 'folded'
end

local nextArg = 4
local function take()
  nextArg = nextArg + 1
  return ARGV[nextArg - 1]
end
-- Reads the counters of a base by suffix. An absent field is false. `valueIn` reads the refusals for a reason when they are needed.
local function read(prefix)
  local fields = {}
  for index, counter in ipairs(COUNTERS) do
    fields[index] = prefix .. counter
  end
  local values = {}
  for index, value in ipairs(redis.call('HMGET', KEYS[3], unpack(fields))) do
    values[COUNTERS[index]] = value
  end
  return { prefix = prefix, values = values }
end
local function valueIn(base, counter)
  if base.values[counter] == nil then
    base.values[counter] = redis.call('HGET', KEYS[3], base.prefix .. counter)
  end
  return tonumber(base.values[counter] or '0')
end

if redis.call('SADD', KEYS[6], ARGV[1]) == 1 and folded then
  redis.call('HSET', KEYS[2], ARGV[1], folded)
end
for _ = 1, tonumber(take()) do
  redis.call('SADD', KEYS[7], take())
end
local expiries = {}
for key = 10, #KEYS do
  expiries[key] = take()
end

-- The counts to add to blocks of series, by index of the block in KEYS, number of the point in the block, and index of the count.
local addedByBlock = {}
local function addToSeries(blocks, offsets, index, increase)
  for position, block in ipairs(blocks) do
    local offset = offsets[(position - 1) % 3 + 1]
    local added = addedByBlock[block] or {}
    local counts = added[offset] or {}
    counts[index] = (counts[index] or 0) + increase
    added[offset] = counts
    addedByBlock[block] = added
  end
end

while nextArg <= #ARGV do
  local service, tenant, name = take(), take(), take()
  local points = tonumber(take())
  local base = read(ARGV[2] .. '/' .. service .. '/' .. tenant .. ':')
  local other = read(ARGV[2] .. '/other.' .. string.match(name, '^[^/]*') .. '/' .. tenant .. ':')
  local increased = {}
  for _ = 1, points do
    local offsets = offsetsOf(tonumber(take()))
    local month = KEYS[tonumber(take())]
    local blocks = {}
    for position = 1, 6 do
      blocks[position] = tonumber(take())
    end
    -- Adds the increase of one counter to the month and the series.
    local function count(counter, index, value)
      local increase = tonumber(value) - valueIn(base, counter)
      if increase <= 0 then
        return
      end
      base.values[counter] = value
      increased[counter] = true
      local subtracted = math.min(increase, valueIn(other, counter))
      if subtracted > 0 then
        increase = increase - subtracted
        other.values[counter] = string.format('%.0f', valueIn(other, counter) - subtracted)
        redis.call('HSET', KEYS[3], other.prefix .. counter, other.values[counter])
      end
      if increase > 0 then
        redis.call('HINCRBY', month, service .. ':' .. counter, string.format('%.0f', increase))
        addToSeries(blocks, offsets, index or countIndexOf(counter, KEYS[9]), increase)
      end
    end
    for index, counter in ipairs(COUNTERS) do
      count(counter, index, take())
    end
    for _ = 1, tonumber(take()) do
      local reason, value = take(), take()
      count('x.' .. reason, nil, value)
    end
  end
  for counter in pairs(increased) do
    redis.call('HSET', KEYS[3], base.prefix .. counter, base.values[counter])
  end
  if next(increased) then
    redis.call('HSET', KEYS[4], service, name)
    redis.call('SADD', KEYS[5], tenant)
  end
end

for block, added in pairs(addedByBlock) do
  addToBlock(KEYS[block], added)
  redis.call('EXPIREAT', KEYS[block], expiries[block])
end
if ARGV[3] == '1' then
  redis.call('SADD', KEYS[8], ARGV[2] .. '/' .. ARGV[1])
end
return 'accepted'
