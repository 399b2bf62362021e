-- Adds what a report has beyond the last seen cumulative values to the periods of its points, exactly once.
-- Differences of integers up to 2^53 are exact in Lua; '%.0f' writes them in full, which tostring does not.
-- KEYS: open, folded, bases of the node, names, tenants, nodes, months, then sums
-- ARGV: node, life, how many months and they, when each of the sums may be forgotten (seconds, '' = never), then per slot
--       service, tenant, '<namespace>/<name>', how many points; per point the places in KEYS of its minute, hour, day and
--       month, and the cumulative received bytes, sent bytes, connections and requests
-- Result: 'accepted', 'seeding' or 'folded'
if redis.call('EXISTS', KEYS[1]) == 0 then
  return 'seeding'
end
local folded = redis.call('HGET', KEYS[2], ARGV[1])
if folded and tonumber(ARGV[2]) <= tonumber(folded) then
  return 'folded'
end

local COUNTERS = { 'r', 's', 'c', 'q' }
local at = 3
local function take()
  at = at + 1
  return ARGV[at - 1]
end

redis.call('SADD', KEYS[6], ARGV[1])
for _ = 1, tonumber(take()) do
  redis.call('SADD', KEYS[7], take())
end
local expiries = {}
for place = 8, #KEYS do
  expiries[place] = take()
end
local touched = {}

while at <= #ARGV do
  local service, tenant, name = take(), take(), take()
  local points = tonumber(take())
  local base = ARGV[2] .. '/' .. service .. '/' .. tenant .. ':'
  local seen = redis.call('HMGET', KEYS[3], base .. 'r', base .. 's', base .. 'c', base .. 'q')
  for counter = 1, 4 do
    seen[counter] = seen[counter] or '0'
  end
  local news = {}
  for _ = 1, points do
    local periods = { tonumber(take()), tonumber(take()), tonumber(take()), tonumber(take()) }
    for counter = 1, 4 do
      local value = take()
      local more = tonumber(value) - tonumber(seen[counter])
      if more > 0 then
        seen[counter] = value
        news[counter] = true
        for _, period in ipairs(periods) do
          touched[period] = true
          redis.call('HINCRBY', KEYS[period], service .. ':' .. COUNTERS[counter], string.format('%.0f', more))
        end
      end
    end
  end
  for counter in pairs(news) do
    redis.call('HSET', KEYS[3], base .. COUNTERS[counter], seen[counter])
  end
  if next(news) then
    redis.call('HSET', KEYS[4], service, name)
    redis.call('SADD', KEYS[5], tenant)
  end
end

for place in pairs(touched) do
  if expiries[place] ~= '' then
    redis.call('EXPIREAT', KEYS[place], expiries[place])
  end
end
return 'accepted'
