-- Points of series; `scripts.ts` puts this file in front of the scripts that write series. A block of a series is a hash: the number of
-- the point in the block → the point. A point is a list of numbers: the counters in the order of COUNTERS, without zeros at the end;
-- then, if the point has refusals, the number of each reason and its count. Each number is in groups of 7 bits, the lowest first; the
-- highest bit of a byte says whether the number continues. `redis/series-codec.ts` decodes points.
local COUNTERS = { 'r', 's', 'c', 'q', 'q2', 'q3', 'q4', 'q5', 'qn' }
local POINTS_PER_BLOCK = 120
local MINUTES_PER_POINT = { 1, 60, 1440 }
-- Refusals for further reasons are counted for the reason 'other'. The number of a reason then always takes one byte.
local MAX_REASONS = 100

-- Returns the numbers of the points of a minute in the blocks of its minute, hour and day.
local function offsetsOf(minute)
  local offsets = {}
  for length, minutes in ipairs(MINUTES_PER_POINT) do
    offsets[length] = math.floor(minute / minutes) % POINTS_PER_BLOCK
  end
  return offsets
end

-- Returns the index in the counts of a point that a counter or the refusals for a reason have. A new reason gets the next number.
local function countIndexOf(suffix, reasons)
  for index, counter in ipairs(COUNTERS) do
    if counter == suffix then
      return index
    end
  end
  local reason = string.sub(suffix, 3)
  local number = tonumber(redis.call('HGET', reasons, reason))
  if not number then
    number = redis.call('HLEN', reasons) + 1
    if number > MAX_REASONS and reason ~= 'other' then
      return countIndexOf('x.other', reasons)
    end
    redis.call('HSET', reasons, reason, number)
  end
  return #COUNTERS + number
end

-- Returns the counts of a point by index.
local function unpackPoint(point)
  local numbers, number, scale = {}, 0, 1
  for index = 1, #point do
    local byte = string.byte(point, index)
    number = number + byte % 128 * scale
    scale = scale * 128
    if byte < 128 then
      numbers[#numbers + 1] = number
      number, scale = 0, 1
    end
  end
  local counts = {}
  for index = 1, math.min(#numbers, #COUNTERS) do
    counts[index] = numbers[index]
  end
  for index = #COUNTERS + 1, #numbers, 2 do
    counts[#COUNTERS + numbers[index]] = numbers[index + 1]
  end
  return counts
end

local function packPoint(counts)
  local numbers, last = {}, 0
  for index = 1, #COUNTERS do
    numbers[index] = counts[index] or 0
    if numbers[index] > 0 then
      last = index
    end
  end
  for index, count in pairs(counts) do
    if index > #COUNTERS then
      numbers[#numbers + 1] = index - #COUNTERS
      numbers[#numbers + 1] = count
      last = #numbers
    end
  end
  local bytes = {}
  for index = 1, last do
    local number = numbers[index]
    while number >= 128 do
      bytes[#bytes + 1] = string.char(128 + number % 128)
      number = math.floor(number / 128)
    end
    bytes[#bytes + 1] = string.char(number)
  end
  return table.concat(bytes)
end

-- Adds counts to the points of a block. `added` has the added counts by the number of the point and by index.
local function addToBlock(block, added)
  local offsets, fields = {}, {}
  for offset in pairs(added) do
    offsets[#offsets + 1] = offset
  end
  for index, point in ipairs(redis.call('HMGET', block, unpack(offsets))) do
    local counts = unpackPoint(point or '')
    for countIndex, count in pairs(added[offsets[index]]) do
      counts[countIndex] = (counts[countIndex] or 0) + count
    end
    fields[#fields + 1] = offsets[index]
    fields[#fields + 1] = packPoint(counts)
  end
  redis.call('HSET', block, unpack(fields))
end
