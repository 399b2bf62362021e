#!lua flags=allow-oom
-- Records that a member (an incarnation of a proxy) lives, unless the member was released.
-- KEYS: lease-members
-- ARGV: member
-- Result: 1 if the member was found, else 0
local known = redis.call('HGET', KEYS[1], ARGV[1])
if not known then
  return 0
end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f ', now) .. string.match(known, '%d+$'))
return 1
