-- What a script sees of Lua, as Redis shows it. Rust offers the rest in `host` and keeps what this
-- chunk returns: the environment of scripts, and the function that runs one.
--
-- A library function is here only if its time is bounded by the memory that a script has; the
-- others are rewritten, in Lua where the limits of scripts apply, or in Rust.

local host = ...

local assert, error, getmetatable, ipairs, next, pairs, pcall, rawequal, rawget, rawset =
  assert, error, getmetatable, ipairs, next, pairs, pcall, rawequal, rawget, rawset
local select, setmetatable, tonumber, tostring, type, unpack, xpcall =
  select, setmetatable, tonumber, tostring, type, unpack, xpcall
local call = host.call
local byte, concat, floor, insert, maxn, remove, rep, sub = string.byte, table.concat, math.floor,
  table.insert, table.maxn, table.remove, string.rep, string.sub

-- Tables that scripts share are faces of the real ones: reading goes through, writing is refused.
local faces = {}

local READ_ONLY = 'Attempt to modify a readonly table'

local function refuse()
  error(READ_ONLY, 2)
end

-- What a script gets as the metatable of a face.
local locked = setmetatable({}, { __newindex = refuse, __metatable = false })

local function face(members)
  local outside = setmetatable({}, { __index = members, __newindex = refuse, __metatable = locked })
  faces[outside] = members
  return outside
end

-- An error of Rust is not Lua's to catch: `host.caught` makes the error of a command a table and
-- raises a limit again.
local function caught(value)
  if type(value) == 'userdata' or value == 'not enough memory' then
    return host.caught(value)
  end
  return value
end

-- As in Redis, a script catches the text of an error that is a table, and the text of an error of
-- these functions names the place in the script.
local function after(ok, ...)
  if ok then
    return true, ...
  end
  local value = caught((...))
  if type(value) == 'table' then
    local text = rawget(value, 'err')
    if type(text) == 'string' then
      return false, text
    end
  elseif type(value) == 'string' and sub(value, 1, 8) == 'sandbox:' then
    return false, host.place(value)
  end
  return false, value
end

local function protected(f, ...)
  return after(pcall(f, ...))
end

-- Lua's own would run the handler where no limit applies.
local function handled(handler, ok, ...)
  if ok then
    return true, ...
  end
  return false, handler(...)
end

local strings = {
  byte = byte, char = string.char, format = string.format, len = string.len, lower = string.lower,
  reverse = string.reverse, sub = sub, upper = string.upper,
}

function strings.rep(s, n)
  if s == '' then
    return ''
  end
  return rep(s, n)
end

function strings.find(s, pattern, init, plain)
  return host.find(s, pattern, init or 1, plain and true or nil, true)
end

local function captures(s, first, last, ...)
  if not first then
    return nil
  elseif select('#', ...) == 0 then
    return sub(s, first, last)
  end
  return ...
end

function strings.match(s, pattern, init)
  return captures(s, host.find(s, pattern, init or 1, false, true))
end

function strings.gmatch(s, pattern)
  local at = 1
  local function step(first, last, ...)
    if not first then
      return nil
    end
    at = last < first and last + 2 or last + 1
    return captures(s, first, last, ...)
  end
  return function()
    if at > #s + 1 then
      return nil
    end
    return step(host.find(s, pattern, at, false, false))
  end
end

local function replacement(with, s, first, last, ...)
  local kind, value = type(with), nil
  if kind == 'string' or kind == 'number' then
    return host.expand(with, sub(s, first, last), ...)
  elseif kind == 'table' then
    value = with[(captures(s, first, last, ...))]
  elseif kind == 'function' then
    value = with(captures(s, first, last, ...))
  else
    error("bad argument #3 to 'gsub' (string/function/table expected)", 3)
  end
  if not value then
    return sub(s, first, last)
  elseif type(value) ~= 'string' and type(value) ~= 'number' then
    error('invalid replacement value (a ' .. type(value) .. ')', 3)
  end
  return value
end

function strings.gsub(s, pattern, with, most)
  s = tostring(s)
  local anchored = byte(pattern) == 94
  local out, at, count = {}, 1, 0
  local function step(first, last, ...)
    if not first then
      return false
    end
    count = count + 1
    out[#out + 1] = sub(s, at, first - 1)
    out[#out + 1] = replacement(with, s, first, last, ...)
    at = last + 1
    if last < first then
      out[#out + 1] = sub(s, first, first)
      at = first + 1
    end
    return not anchored and at <= #s + 1
  end
  most = most or #s + 1
  while count < most and step(host.find(s, pattern, at, false, true)) do end
  out[#out + 1] = sub(s, at)
  return concat(out), count
end

local text = getmetatable('')
text.__index, text.__metatable = strings, false

local tables = { getn = table.getn }

-- Each element that a function moves is worth an instruction; up to a hundred are not worth the
-- counting.
local function charge(count)
  if count > 100 then
    host.spend(count)
  end
end

local function expect_table(t, name)
  if type(t) ~= 'table' then
    error("bad argument #1 to '" .. name .. "' (table expected, got " .. type(t) .. ')', 3)
  end
end

function tables.insert(t, ...)
  expect_table(t, 'insert')
  if faces[t] then
    error(READ_ONLY, 2)
  end
  if select('#', ...) == 2 then
    local position, count = tonumber((...)), #t
    if position and (position < 1 or position > count + 1) then
      error("bad argument #2 to 'insert' (position out of bounds)", 2)
    end
    charge(position and count - position or 0)
  end
  return insert(t, ...)
end

function tables.remove(t, ...)
  expect_table(t, 'remove')
  charge(#t - (tonumber((...)) or #t))
  return remove(t, ...)
end

function tables.concat(t, ...)
  expect_table(t, 'concat')
  charge(#t)
  return concat(t, ...)
end

function tables.maxn(t)
  expect_table(t, 'maxn')
  charge(#t)
  return maxn(t)
end

-- A merge sort: however the comparator lies, it ends.
function tables.sort(t, less)
  expect_table(t, 'sort')
  less = less or function(a, b) return a < b end
  local count, width, other = #t, 1, {}
  while width < count do
    for left = 1, count, 2 * width do
      local i, j = left, left + width
      local middle, right = j, left + 2 * width
      for k = left, right <= count and right - 1 or count do
        if i < middle and i <= count and (j >= right or j > count or not less(t[j], t[i])) then
          other[k], i = t[i], i + 1
        else
          other[k], j = t[j], j + 1
        end
      end
    end
    for k = 1, count do
      t[k] = other[k]
    end
    width = 2 * width
  end
end

local maths = {}
for name, member in pairs(math) do
  maths[name] = member
end

-- With Redis's generator.
function maths.random(...)
  local r, count, low, high = host.random(), select('#', ...), ...
  if count == 0 then
    return r
  elseif count == 1 then
    low, high = 1, low
  elseif count > 2 then
    error('wrong number of arguments')
  end
  low, high = floor(low), floor(high)
  if low > high then
    error("bad argument #" .. count .. " to 'random' (interval is empty)")
  end
  return floor(r * (high - low + 1)) + low
end

maths.randomseed = host.seed

local lib = {
  LOG_DEBUG = 0, LOG_VERBOSE = 1, LOG_NOTICE = 2, LOG_WARNING = 3,
  REDIS_VERSION = host.version, REDIS_VERSION_NUM = host.version_number,
  REPL_NONE = 0, REPL_AOF = 1, REPL_SLAVE = 2, REPL_REPLICA = 2, REPL_ALL = 3,
  call = host.call, sha1hex = host.sha1hex,
}

local function reply(ok, value)
  if ok then
    return value
  end
  return caught(value)
end

function lib.pcall(...)
  return reply(pcall(call, ...))
end

local function single(field, convert)
  return function(...)
    local value = ...
    if select('#', ...) ~= 1 or type(value) ~= 'string' then
      return { err = 'ERR wrong number or type of arguments' }
    end
    return { [field] = convert(value) }
  end
end

lib.status_reply = single('ok', function(value) return value end)
lib.error_reply = single('err', function(value)
  value = byte(value) == 45 and sub(value, 2) or value
  value = host.find(value, ' ', 1, true, false) and value or 'ERR ' .. value
  while byte(value, -1) == 10 or byte(value, -1) == 13 do
    value = sub(value, 1, -2)
  end
  return value
end)

local function check(is_right, text)
  if not is_right then
    error({ err = 'ERR ' .. text }, 0)
  end
end

-- A node has no log of its clients, no debugger and no replicas.
function lib.log(...)
  local level = ...
  check(select('#', ...) >= 2, 'redis.log() requires two arguments or more.')
  check(type(level) == 'number', 'First argument must be a number (log level).')
  check(level >= 0 and level <= 3, 'Invalid log level.')
end

function lib.setresp(...)
  check(select('#', ...) == 1, 'redis.setresp() requires one argument.')
  local version = floor(tonumber((...)) or 0)
  check(version == 2 or version == 3, 'RESP version must be 2 or 3.')
  host.set_protocol(version)
end

function lib.set_repl(...)
  check(select('#', ...) == 1, 'redis.set_repl() requires one argument.')
  local flags = tonumber((...)) or 0
  check(flags >= 0 and flags <= 3, 'Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.')
end

function lib.breakpoint()
  return false
end

function lib.debug() end

function lib.replicate_commands()
  return true
end

local globals = {
  _VERSION = _VERSION, assert = assert, error = error, getmetatable = getmetatable, ipairs = ipairs,
  next = next, pcall = protected, rawequal = rawequal, rawget = rawget, select = select, tonumber = tonumber, tostring = tostring,
  type = type, unpack = unpack,
  math = face(maths), string = face(strings), table = face(tables), redis = face(lib),
}
globals.server = globals.redis

for name, library in pairs(host.libraries) do
  globals[name] = face(library)
end

function globals.pairs(t)
  local members = faces[t]
  if not members then
    return pairs(t)
  end
  return function(_, key) return next(members, key) end, t, nil
end

function globals.rawset(t, key, value)
  check(not faces[t], READ_ONLY)
  return rawset(t, key, value)
end

function globals.setmetatable(t, meta)
  if faces[t] then
    error(READ_ONLY, 0)
  end
  return setmetatable(t, meta)
end

function globals.xpcall(f, handler)
  return handled(handler, protected(f))
end

setmetatable(globals, {
  __index = function(_, name)
    error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
  end,
})

local environment = face(globals)
globals._G = environment

local function run(script, keys, argv)
  globals.KEYS, globals.ARGV = keys, argv
  return xpcall(script, host.failed)
end

return environment, run
