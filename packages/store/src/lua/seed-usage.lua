-- Writes month totals and bases into a ledger that is not open, and opens it.
-- KEYS: open, folded, names, tenants, nodes, months, then sums and bases
-- ARGV: how many months and they; how many folded lives, per life its node and number; how many rows, per row its place in KEYS, service, tenant, '<namespace>/<name>', received
--       bytes, sent bytes, connections, requests; then per base its place in KEYS, node, life, service, tenant and the same
--       four counters
-- Result: 'seeded', or 'already' when it was open
if redis.call('EXISTS', KEYS[1]) == 1 then
  return 'already'
end
local at = 1
local function take()
  at = at + 1
  return ARGV[at - 1]
end

local function write(key, prefix)
  redis.call('HSET', key, prefix .. 'r', take(), prefix .. 's', take(), prefix .. 'c', take(), prefix .. 'q', take())
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
for _ = 1, tonumber(take()) do
  local place, service, tenant, name = tonumber(take()), take(), take(), take()
  redis.call('HSET', KEYS[3], service, name)
  redis.call('SADD', KEYS[4], tenant)
  write(KEYS[place], service .. ':')
end
while at <= #ARGV do
  local place, node, life, service, tenant = tonumber(take()), take(), take(), take(), take()
  local folded = redis.call('HGET', KEYS[2], node)
  if folded and tonumber(life) <= tonumber(folded) then
    at = at + 4
  else
    redis.call('SADD', KEYS[5], node)
    write(KEYS[place], life .. '/' .. service .. '/' .. tenant .. ':')
  end
end
redis.call('SET', KEYS[1], '1')
return 'seeded'
