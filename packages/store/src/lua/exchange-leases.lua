#!lua flags=allow-oom
-- Records what a member (an incarnation of a proxy) holds and needs of fleet-wide limits, and grants what the other members do not hold.
-- KEYS: lease-open, lease-members, then the leases
-- ARGV: member; sequence of the exchange; 1 if shares may be raised, else 0; registration, maximum gap, maximum silence and the
--       silence after which reports are out of date, in ms; then per lease: limit, held, wanted, and the claim as
--       '<demand> <weight> <floor> <used>'
-- Result: per lease '<share> <rank>', then ';<claim>' for each other member; an empty list if a later exchange was processed. Another
--         version may write a claim with fewer or more numbers.
local member, sequence = ARGV[1], tonumber(ARGV[2])
local known = redis.call('HGET', KEYS[2], member)
if known and tonumber(string.match(known, '%d+$')) >= sequence then
  return {}
end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

-- After a gap, the silence of a member does not show that the member has ended. The gap is negative if the clock was set back.
local opened, heard = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+) (%d+)$')
local gap = now - tonumber(heard or '0')
opened = (opened and gap >= 0 and gap <= tonumber(ARGV[5])) and tonumber(opened) or now
redis.call('SET', KEYS[1], string.format('%.0f %.0f', opened, now))
redis.call('HSET', KEYS[2], member, string.format('%.0f %.0f', now, sequence))
local mayRaise = ARGV[3] == '1' and now - opened >= tonumber(ARGV[4])
local silence = tonumber(ARGV[6])
local mayExpire = now - opened >= silence

local isMember = {}
local isSilent = {}
-- Reports whether a member is neither released nor silent for too long. After the clock was set back, the silence begins anew, because a
-- member that has ended would otherwise keep its shares for as long as the clock was ahead.
local function check(name)
  local entry = redis.call('HGET', KEYS[2], name)
  local silentFor = entry and now - tonumber(string.match(entry, '^%d+'))
  if entry and silentFor < 0 then
    redis.call('HSET', KEYS[2], name, string.format('%.0f ', now) .. string.match(entry, '%d+$'))
  elseif entry and mayExpire and silentFor >= silence then
    redis.call('HDEL', KEYS[2], name)
    entry = false
  end
  isMember[name] = entry and true or false
  isSilent[name] = entry and silentFor >= tonumber(ARGV[7])
  return isMember[name]
end

-- Returns the claim of a silent member: the member may be using all that it holds, because its reports do not arrive.
local function fullUse(otherHeld, value)
  local demand, weight, floor = string.match(value, '^%S+ (%S+) (%S+) (%S+)')
  if (tonumber(demand) or 0) < tonumber(otherHeld) then
    demand = otherHeld
  end
  return demand .. ' ' .. weight .. ' ' .. floor .. ' ' .. otherHeld
end

-- Most leases are idle. Their values are not written again, and their expiry is extended in the first minute of each hour only, because
-- each write takes time and is replicated.
local isExpiryDue = now % 3600000 < 60000
local results = {}
for key = 3, #KEYS do
  local arg = 4 * key - 4
  local free, held, wanted = tonumber(ARGV[arg]), tonumber(ARGV[arg + 1]), tonumber(ARGV[arg + 2])
  local fields = redis.call('HGETALL', KEYS[key])
  local result = { '' }
  local rank, stored
  for i = 1, #fields, 2 do
    local name, value = fields[i], fields[i + 1]
    if name == member then
      rank, stored = #result - 1, value
    elseif isMember[name] or (isMember[name] == nil and check(name)) then
      local space = string.find(value, ' ', 1, true)
      local otherHeld = string.sub(value, 1, space - 1)
      free = free - tonumber(otherHeld)
      result[#result + 1] = isSilent[name] and fullUse(otherHeld, value) or string.sub(value, space + 1)
    else
      redis.call('HDEL', KEYS[key], name)
    end
  end
  local share, holds = ARGV[arg + 2], ARGV[arg + 1]
  if wanted > held then
    share = mayRaise and string.format('%.0f', math.max(held, math.min(wanted, free))) or ARGV[arg + 1]
    holds = share
  end
  if held > 0 or wanted > 0 then
    local value = holds .. ' ' .. ARGV[arg + 3]
    if value ~= stored then
      redis.call('HSET', KEYS[key], member, value)
    end
    if isExpiryDue or not stored then
      -- Removes the leases of tenants and Services that are gone.
      redis.call('EXPIRE', KEYS[key], 86400)
    end
  elseif stored then
    redis.call('HDEL', KEYS[key], member)
  end
  result[1] = share .. ' ' .. (rank or #result - 1)
  results[key - 2] = table.concat(result, ';')
end
return results
