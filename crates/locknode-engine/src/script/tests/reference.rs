//! Each behaviour as a Lua script of our own: what the native one must do too.

/// Returns the names and the scripts.
pub(super) fn scripts() -> Vec<(&'static str, &'static str)> {
    let parts = SCRIPTS.split("\n-- ").skip(1);
    parts.filter_map(|part| part.split_once('\n')).collect()
}

/// Each script follows its name.
const SCRIPTS: &str = "
-- RELEASE
local holder = redis.call('get', KEYS[1])
if holder ~= ARGV[1] then return 0 end
return redis.call('del', KEYS[1])

-- RELEASE
local kind = redis.call('type', KEYS[1])
local mine = kind.ok == 'string' and redis.call('get', KEYS[1]) == ARGV[1]
if mine then return redis.call('del', KEYS[1]) end
return 0

-- RELEASE_ABSENT_MINUS_ONE
local holder = redis.call('get', KEYS[1])
if holder == ARGV[1] then return redis.call('del', KEYS[1]) end
return holder == false and -1 or 0

-- RELEASE_GRADED
local holder = redis.call('get', KEYS[1])
if holder == false then return -1 end
if holder == ARGV[1] then return redis.call('del', KEYS[1]) end
return -2

-- RELEASE_OR_NIL
local holder = redis.call('get', KEYS[1])
if holder ~= ARGV[1] then return false end
redis.call('unlink', KEYS[1])
return true

-- RELEASE_OR_ERROR
local holder = redis.call('get', KEYS[1])
if holder == false then return redis.status_reply('OK') end
if holder ~= ARGV[1] then return redis.error_reply('ERROR') end
return redis.call('del', KEYS[1])

-- DELETE_ANY
local deleted = redis.call('del', KEYS[1])
if deleted ~= 1 then return 0 end
return deleted

-- EXTEND
local holder = redis.call('get', KEYS[1])
if holder ~= ARGV[1] then return 0 end
return redis.call('pexpire', KEYS[1], ARGV[2])

-- EXTEND
local kind = redis.call('type', KEYS[1])
local mine = kind.ok == 'string' and redis.call('get', KEYS[1]) == ARGV[1]
if mine then return redis.call('pexpire', KEYS[1], ARGV[2]) end
return 0

-- EXTEND_OR_NIL
local holder = redis.call('get', KEYS[1])
if holder ~= ARGV[1] then return false end
redis.call('pexpire', KEYS[1], ARGV[2])
return true

-- EXTEND_SECONDS_INVERTED
local holder = redis.call('get', KEYS[1])
if holder ~= ARGV[1] then return 1 end
redis.call('expire', KEYS[1], ARGV[2])
return 0

-- EXTEND_SECONDS_OR_PERSIST
local holder = redis.call('get', KEYS[1])
if holder ~= ARGV[1] then return 0 end
if tonumber(ARGV[2]) > 0 then return redis.call('expire', KEYS[1], ARGV[2]) end
redis.call('persist', KEYS[1])
return 1

-- EXTEND_SECONDS_WITH_TTL
local holder = redis.call('get', KEYS[1])
if holder ~= ARGV[1] then return 1 end
if redis.call('ttl', KEYS[1]) < 0 then return 2 end
redis.call('expire', KEYS[1], ARGV[2])
return 0

-- EXTEND_LATER_OR_ERROR
local holder = redis.call('get', KEYS[1])
if holder ~= ARGV[1] then return redis.error_reply('NOT LOCKED') end
return redis.call('pexpire', KEYS[1], ARGV[2], 'GT')

-- EXTEND_AT
local holder = redis.call('get', KEYS[1])
if holder ~= ARGV[1] then return 0 end
return redis.call('pexpireat', KEYS[1], ARGV[2])

-- EXTEND_AT_AND_READ
local holder = redis.call('get', KEYS[1])
if holder ~= ARGV[1] then return 0 end
local extended = redis.call('pexpireat', KEYS[1], ARGV[2])
redis.call('get', KEYS[1])
return extended

-- EXTEND_BY_SET
local holder = redis.call('get', KEYS[1])
if holder ~= ARGV[1] then return 0 end
redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1

-- EXTEND_BY_SET_OR_TEXT
local holder = redis.call('get', KEYS[1])
if holder ~= ARGV[1] then return 'ERR' end
return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2], 'XX')

-- EXTEND_BY_SET_FROM_KEYS
local holder = redis.call('get', KEYS[1])
if holder ~= KEYS[3] then return 0 end
return redis.call('set', KEYS[1], KEYS[3], 'XX', 'PX', KEYS[2])

-- EXTEND_ANY_OR_ACQUIRE
local set = redis.call('set', KEYS[1], ARGV[1], 'XX', 'PX', ARGV[2])
if set then return 'OK' end
return redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])

-- EXTEND_OR_ACQUIRE
local holder = redis.call('get', KEYS[1])
if holder == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end
local set = redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
return set and 1 or 0

-- EXTEND_OR_CREATE
local holder = redis.call('get', KEYS[1])
if holder == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end
if holder then return -1 end
redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1

-- EXTEND_WITH_TTL
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
if redis.call('pttl', KEYS[1]) < 0 then return 0 end
redis.call('pexpire', KEYS[1], ARGV[2])
return 1

-- EXTEND_ADDING
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
local left = redis.call('pttl', KEYS[1])
if left < 0 then return 0 end
redis.call('pexpire', KEYS[1], left + ARGV[2])
return 1

-- EXTEND_ADDING_OR_REPLACING
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
local left = redis.call('pttl', KEYS[1])
if left < 0 then return 0 end
local ttl = ARGV[3] == '0' and ARGV[2] + left or ARGV[2]
redis.call('pexpire', KEYS[1], ttl)
return 1

-- EXTEND_ENOUGH_LEFT
local left = redis.call('pttl', KEYS[1])
if left == -2 then return {-1, -2} end
if left < tonumber(ARGV[2]) then return {0, left} end
if redis.call('get', KEYS[1]) ~= ARGV[1] then return {-1, left} end
redis.call('pexpire', KEYS[1], tonumber(ARGV[3]))
return {1, left}

-- ACQUIRE
local set = redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX')
return set

-- ACQUIRE_AT_AND_READ
local set = redis.call('set', KEYS[1], ARGV[1], 'PXAT', ARGV[2], 'NX')
redis.call('get', KEYS[1])
return set

-- ACQUIRE_AND_READ
local set = redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX')
redis.call('get', KEYS[1])
return set

-- FORCE_AND_READ
local set = redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2])
redis.call('get', KEYS[1])
return set

-- FORCE_AT_AND_READ
local set = redis.call('set', KEYS[1], ARGV[1], 'pxat', ARGV[2])
redis.call('get', KEYS[1])
return set

-- ACQUIRE_OR_EXTEND
local free = redis.call('exists', KEYS[1]) == 0
if free or redis.call('get', KEYS[1]) == ARGV[1] then
    return redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2])
end
return nil

-- ACQUIRE_IF_ALLOWED_OR_EXTEND
local free = redis.call('exists', KEYS[1]) == 0
if free and ARGV[3] == 'yes' or redis.call('get', KEYS[1]) == ARGV[1] then
    return redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2])
end
return nil

-- ACQUIRE_OR_ERROR
local holder = redis.call('get', KEYS[1])
if holder and holder ~= ARGV[1] then return redis.error_reply('ERROR') end
return redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2])

-- ACQUIRE_OR_NIL
local holder = redis.call('get', KEYS[1])
if holder == ARGV[1] then
    redis.call('pexpire', KEYS[1], ARGV[2])
elseif holder then
    return false
else
    redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2])
end
return true

-- ACQUIRE_OPTIONAL_TTL
if redis.call('setnx', KEYS[1], ARGV[1]) == 0 then return 0 end
if ARGV[2] == '' then return 1 end
redis.call('pexpire', KEYS[1], ARGV[2])
return 1

-- ACQUIRE_REENTRANT
if redis.call('get', KEYS[1]) == ARGV[1] then return 1 end
local set = redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX')
return set and 1 or 0

-- ACQUIRE_FREE
if redis.call('exists', KEYS[1]) ~= 0 then return 0 end
redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2])
return 1

-- ACQUIRE_FREE_SECONDS
if redis.call('exists', KEYS[1]) > 0 then return false end
return redis.call('setex', KEYS[1], ARGV[2], ARGV[1])

-- ACQUIRE_ALL
for _, name in ipairs(KEYS) do
    if redis.call('exists', name) ~= 0 then return 0 end
end
for _, name in ipairs(KEYS) do
    redis.call('set', name, ARGV[1], 'px', ARGV[2])
end
return #KEYS

-- EXTEND_ALL
for _, name in ipairs(KEYS) do
    local holder = redis.call('get', name)
    if holder ~= ARGV[1] then return 0 end
end
for _, name in ipairs(KEYS) do
    redis.call('set', name, ARGV[1], 'px', ARGV[2])
end
return #KEYS

-- RELEASE_ALL
local released = 0
for _, name in ipairs(KEYS) do
    local holder = redis.call('get', name)
    if holder == ARGV[1] then
        released = released + 1
        redis.pcall('del', name)
    end
end
return released

-- ACQUIRE_EACH
for at, name in ipairs(KEYS) do
    if redis.call('exists', name) ~= 0 then return {0, at, name} end
end
local ttl = tonumber(ARGV[#ARGV])
for at, name in ipairs(KEYS) do
    redis.call('set', name, ARGV[at], 'px', ttl)
end
return {1, #KEYS}

-- OBTAIN_ALL
local pairs_to_set = {}
for at, name in ipairs(KEYS) do
    pairs_to_set[2 * at - 1] = name
    pairs_to_set[2 * at] = ARGV[1]
end
if redis.call('msetnx', unpack(pairs_to_set)) == 0 then
    local offset = tonumber(ARGV[2])
    for _, name in ipairs(KEYS) do
        local start = redis.call('getrange', name, 0, offset - 1)
        if start ~= string.sub(ARGV[1], 1, offset) then return false end
    end
    redis.call('mset', unpack(pairs_to_set))
end
for _, name in ipairs(KEYS) do
    redis.call('pexpire', name, ARGV[3])
end
return redis.status_reply('OK')

-- OBTAIN_ONE
local set = redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[3], 'NX')
if set then return set end
local offset = tonumber(ARGV[2])
local start = redis.call('getrange', KEYS[1], 0, offset - 1)
if start ~= string.sub(ARGV[1], 1, offset) then return nil end
return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[3])

-- RELEASE_ALL_OR_NONE
local holders = redis.call('mget', unpack(KEYS))
for at = 1, #KEYS do
    if holders[at] ~= ARGV[1] then return false end
end
redis.call('del', unpack(KEYS))
return redis.status_reply('OK')

-- EXTEND_ALL_OR_NONE
local holders = redis.call('mget', unpack(KEYS))
for at = 1, #KEYS do
    if holders[at] ~= ARGV[1] then return false end
end
for at = 1, #KEYS do
    redis.call('pexpire', KEYS[at], ARGV[2])
end
return redis.status_reply('OK')

-- SHORTEST_TTL
local holders = redis.call('mget', unpack(KEYS))
for at = 1, #KEYS do
    if holders[at] ~= ARGV[1] then return false end
end
local shortest = 0
for at = 1, #KEYS do
    local left = redis.call('pttl', KEYS[at])
    if left > 0 and (shortest == 0 or left < shortest) then shortest = left end
end
return shortest

-- TTL_OR_MINUS_THREE
local holder = redis.call('get', KEYS[1])
if holder ~= ARGV[1] then return -3 end
return redis.call('pttl', KEYS[1])

-- TTL_OR_ZERO
local holder = redis.call('get', KEYS[1])
if holder ~= ARGV[1] then return 0 end
local left = redis.call('pttl', KEYS[1])
if left > 0 then return left end
return 0

-- TTL_OR_ERROR
local holder = redis.call('get', KEYS[1])
if holder and holder == ARGV[1] then return redis.call('ttl', KEYS[1]) end
return redis.error_reply('ERROR')

-- TOKEN_AND_TTL
local holder = redis.call('get', KEYS[1])
local left = redis.call('pttl', KEYS[1])
return {holder, left}

-- TOKEN_AND_TTL_OR_NIL
local holder = redis.call('get', KEYS[1])
if holder == false then return false end
return {holder, redis.call('pttl', KEYS[1])}

-- FIRST_FREE
local holders = redis.call('mget', unpack(KEYS))
for at, holder in ipairs(holders) do
    if holder == false then
        redis.call('set', KEYS[at], ARGV[3], 'ex', ARGV[2])
        return ARGV[1] .. at
    end
end

-- TIME_PROBE
redis.call('time')
redis.call('set', KEYS[1], '1', 'px', 1)
return 1
";
