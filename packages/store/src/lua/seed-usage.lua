-- Writes month totals and bases into a ledger that is not open, and opens the ledger.
-- KEYS: open, folded, names, tenants, nodes, months, then sums and bases
-- ARGV: number of months, then the months; number of folded incarnations, then per incarnation: node, number; number of rows,
--       then per row: its index in KEYS, service, tenant, '<namespace>/<name>', received bytes, sent bytes, connections, requests, and
--       requests with the code classes 2xx, 3xx, 4xx, 5xx and none, number of reasons, and per reason: reason, refusals;
--       then per base: its index in KEYS, node, incarnation, service, tenant and the same counters
-- Result: 'seeded'; 'already' if the ledger was open
if redis.call('EXISTS', KEYS[1]) == 1 then
  return 'already'
end
local nextArg = 1
local function take()
  nextArg = nextArg + 1
  return ARGV[nextArg - 1]
end

local COUNTERS = { 'r', 's', 'c', 'q', 'q2', 'q3', 'q4', 'q5', 'qn' }
-- A Service without HTTP has no fields of code classes, so these fields take no memory. Skips the counters if `key` is nil.
local function write(key, prefix)
  for counter, suffix in ipairs(COUNTERS) do
    local value = take()
    if key and (counter <= 4 or value ~= '0') then
      redis.call('HSET', key, prefix .. suffix, value)
    end
  end
  for _ = 1, tonumber(take()) do
    local reason, value = take(), take()
    if key then
      redis.call('HSET', key, prefix .. 'x.' .. reason, value)
    end
  end
end

for _ = 1, tonumber(take()) do
  redis.call('SADD', KEYS[6], take())
end
for _ = 1, tonumber(take()) do
  local node, life = take(), take()
  local folded = redis.call('HGET', KEYS[2], node)
  if not folded or tonumber(folded) < tonumber(life) then
    redis.call('HSET', KEYS[2], node, life)
  end
end
local rows = tonumber(take())
for _ = 1, rows do
  local index, service, tenant, name = tonumber(take()), take(), take(), take()
  redis.call('HSET', KEYS[3], service, name)
  redis.call('SADD', KEYS[4], tenant)
  write(KEYS[index], service .. ':')
end
while nextArg <= #ARGV do
  local index, node, life, service, tenant = tonumber(take()), take(), take(), take(), take()
  local folded = redis.call('HGET', KEYS[2], node)
  if folded and tonumber(life) <= tonumber(folded) then
    write(nil, '')
  else
    redis.call('SADD', KEYS[5], node)
    write(KEYS[index], life .. '/' .. service .. '/' .. tenant .. ':')
  end
end
-- The time at which usage was restored, in milliseconds since the Unix epoch; '1' if there is none. Older versions always write '1'.
redis.call('SET', KEYS[1], rows > 0 and redis.call('TIME')[1] .. '000' or '1')
return 'seeded'
