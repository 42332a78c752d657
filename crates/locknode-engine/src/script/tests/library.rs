//! The functions that scripts have, and their errors. The replies are those of Redis 8.0.6.

use super::*;

#[test]
fn a_script_sees_the_functions_of_redis() {
    check(
        r#"
        return cjson.encode({1,2,3}) => '[1,2,3]'
        return cjson.encode({a=1}) => '{"a":1}'
        return cjson.encode({}) => '{}'
        return cjson.encode({[1]=1,[100]=2}) => !ERR user_script:1: Cannot serialise table: excessively sparse array @1
        return cjson.encode({[1]=1,[3]=2}) => '[1,null,2]'
        return cjson.encode({1,nil,3}) => '[1,null,3]'
        return cjson.encode(1.5) => '1.5'
        return cjson.encode(1e20) => '1e+20'
        return cjson.encode(123456789012345) => '1.2345678901234e+14'
        return cjson.encode(0.1) => '0.1'
        return cjson.encode(1/0) => !ERR user_script:1: Cannot serialise number: must not be NaN or Inf @1
        return cjson.encode(0/0) => !ERR user_script:1: Cannot serialise number: must not be NaN or Inf @1
        return cjson.encode("a\"b/\n\0\127\8\12\9") => '"a\"b\/\n\u0000\u007f\b\f\t"'
        return cjson.encode(cjson.null) => 'null'
        return cjson.null => nil
        return type(cjson.null) => 'userdata'
        return tostring(cjson.null) => 'userdata: (nil)'
        return {1,cjson.null,2} => [1 nil 2]
        return pcall(error,cjson.null) => nil
        return cjson.encode(function() end) => !ERR user_script:1: Cannot serialise function: type not supported @1
        return cjson.encode({[true]=1}) => !ERR user_script:1: Cannot serialise boolean: table key must be a number or string @1
        return cjson.encode({[1.5]=1}) => '{"1.5":1}'
        local t={} t[1]=t return cjson.encode(t) => !ERR user_script:1: Cannot serialise, excessive nesting (1001) @1
        return cjson.encode() => !ERR user_script:1: bad argument #1 to 'encode' (expected 1 argument) @1
        return cjson.encode(1,2) => !ERR user_script:1: bad argument #1 to 'encode' (expected 1 argument) @1
        return cjson.decode() => !ERR user_script:1: bad argument #1 to 'decode' (expected 1 argument) @1
        return cjson.decode("[1,2") => !ERR user_script:1: Expected comma or array end but found T_END at character 5 @1
        return cjson.decode("{") => !ERR user_script:1: Expected object key string but found T_END at character 2 @1
        return cjson.decode("") => !ERR user_script:1: Expected value but found T_END at character 1 @1
        return cjson.decode("nul") => !ERR user_script:1: Expected value but found invalid token at character 1 @1
        return cjson.decode("[1] x") => !ERR user_script:1: Expected the end but found invalid token at character 5 @1
        return tostring(cjson.decode("null")) => 'userdata: (nil)'
        return cjson.decode("[1,null,3]") => [1 nil 3]
        return cjson.decode("{\"a\":[1,{\"b\":2}]}").a[2].b => 2
        return cjson.decode(string.rep("[",1001)..string.rep("]",1001)) => !ERR user_script:1: Found too many nested data structures (1001) at character 1001 @1
        return type(cjson.decode(string.rep("[",1000)..string.rep("]",1000))) => 'table'
        return tostring(cjson.decode("1e400")) => 'inf'
        return tostring(cjson.decode("[0x10]")[1]) => '16'
        return tostring(cjson.decode("[NaN]")[1]) => 'nan'
        return cjson.decode("[01]") => [1]
        return cjson.decode("[1.]") => [1]
        return cjson.decode("[-]") => !ERR user_script:1: Expected value but found invalid number at character 2 @1
        return cjson.decode("[+1]") => [1]
        return cjson.decode("[.5]") => !ERR user_script:1: Expected value but found invalid token at character 2 @1
        return cjson.decode("[-.5]") => [0]
        return cjson.decode("\"\\ud83d\"") => !ERR user_script:1: Expected value but found invalid unicode escape code at character 2 @1
        return cjson.decode("\"\\ude00\"") => !ERR user_script:1: Expected value but found invalid unicode escape code at character 2 @1
        return cjson.decode("\"\\u12g4\"") => !ERR user_script:1: Expected value but found invalid unicode escape code at character 2 @1
        return cjson.decode("\"\\x\"") => !ERR user_script:1: Expected value but found invalid escape code at character 2 @1
        return cjson.decode("\"abc") => !ERR user_script:1: Expected value but found unexpected end of string at character 5 @1
        return cjson.decode("\"abc\\") => !ERR user_script:1: Expected value but found invalid escape code at character 5 @1
        return cjson.decode(5) => 5
        return cjson.decode({}) => !ERR user_script:1: bad argument #1 to 'decode' (string expected, got table) @1
        return cjson.encode({[0]=1}) => '{"0":1}'
        return cjson.encode({[10]=1}) => '[null,null,null,null,null,null,null,null,null,1]'
        return cjson.encode({[11]=1}) => !ERR user_script:1: Cannot serialise table: excessively sparse array @1
        return cjson.encode({[1]=1,[20]=2}) => !ERR user_script:1: Cannot serialise table: excessively sparse array @1
        return cjson.decode("tru") => !ERR user_script:1: Expected value but found invalid token at character 1 @1
        return cjson.decode("{1:2}") => !ERR user_script:1: Expected object key string but found T_NUMBER at character 2 @1
        return cjson.decode("{\"a\" 1}") => !ERR user_script:1: Expected colon but found T_NUMBER at character 6 @1
        return cjson.decode("{\"a\":1 \"b\":2}") => !ERR user_script:1: Expected comma or object end but found T_STRING at character 8 @1
        return cjson.decode("{\"a\":1,}") => !ERR user_script:1: Expected object key string but found T_OBJ_END at character 8 @1
        return cjson.decode("[1 2]") => !ERR user_script:1: Expected comma or array end but found T_NUMBER at character 4 @1
        return cjson.decode("[1,]") => !ERR user_script:1: Expected value but found T_ARR_END at character 4 @1
        return cjson.decode("[1]]") => !ERR user_script:1: Expected the end but found T_ARR_END at character 4 @1
        return cjson.decode("}") => !ERR user_script:1: Expected value but found T_OBJ_END at character 1 @1
        return cjson.decode(":") => !ERR user_script:1: Expected value but found T_COLON at character 1 @1
        return cjson.encode(-0.0) => '-0'
        return cjson.encode(1e14) => '1e+14'
        return cjson.encode(3.141592653589793) => '3.1415926535898'
        return cjson.encode({["1"]=2}) => '{"1":2}'
        local x={} for i=1,1001 do x={x} end return cjson.encode(x) => !ERR user_script:1: Cannot serialise, excessive nesting (1001) @1
        local x={} for i=1,999 do x={x} end return #cjson.encode(x) => 2000
        return cjson.encode({a={b={1,2,{c=3}}}}) => '{"a":{"b":[1,2,{"c":3}]}}'
        return cmsgpack.pack() => !ERR user_script:1: bad argument #0 to 'pack' (MessagePack pack needs input.) @1
        return {cmsgpack.unpack(cmsgpack.pack(1,-1,300,-300,70000,-70000,5000000000,-5000000000,'abc',true,false))} => [1 -1 300 -300 70000 -70000 5000000000 -5000000000 'abc' 1 nil]
        return {cmsgpack.unpack(cmsgpack.pack({1,{2,3}},{4}))} => [[1 [2 3]] [4]]
        return tostring(cmsgpack.unpack(cmsgpack.pack(0.1))) => '0.1'
        return tostring(cmsgpack.unpack(cmsgpack.pack(0.5))) => '0.5'
        return cmsgpack.unpack('\129\161a\1').a => 1
        return {cmsgpack.unpack('')} => []
        return cmsgpack.unpack('\193') => !ERR user_script:1: Bad data format in input. @1
        return cmsgpack.unpack('\146\1') => !ERR user_script:1: Missing bytes in input. @1
        return cmsgpack.unpack('\206\1') => !ERR user_script:1: Missing bytes in input. @1
        return cmsgpack.unpack('\162a') => !ERR user_script:1: Missing bytes in input. @1
        return cmsgpack.unpack(5) => 53
        return {bit.band(255,15),bit.bor(1,2,4),bit.bxor(7,2),bit.bnot(0),bit.tobit(4294967295),bit.tobit(2^40+5)} => [15 7 5 -1 -1 5]
        return {bit.lshift(1,31),bit.rshift(-1,28),bit.arshift(-8,1),bit.rol(0x12345678,8),bit.ror(0x12345678,8),bit.bswap(0x12345678)} => [-2147483648 15 -4 878082066 2014458966 2018915346]
        return {bit.tohex(1),bit.tohex(-1,4),bit.tohex(255,-2),bit.tohex(0x1234,2),bit.tohex(1,0),bit.tohex(1,20)} => ['00000001' 'ffff' 'FF' '34' '' '00000001']
        return {bit.lshift(1,32),bit.lshift(1,33),bit.lshift(1,-1)} => [1 2 -2147483648]
        return bit.band(1.5,3) => 2
        return {bit.tobit(1e100),bit.tobit(-2^40-1),bit.tobit(0/0)} => [630506365 -1 0]
        return bit.bor(1,'x') => !ERR user_script:1: bad argument #2 to 'bor' (number expected, got string) @1
        return bit.rol(1) => !ERR user_script:1: bad argument #2 to 'rol' (number expected, got no value) @1
        return {bit.tobit(1.5),bit.tobit(2.5),bit.tobit(-1.5)} => [2 2 -2]
        return struct.pack('c2','abc') => 'ab'
        return struct.pack('c0','abc') => 'abc'
        return {struct.unpack('<i4i4l',struct.pack('<i4i4l',1e100,-1e100,0/0))} => [0 0 -9223372036854775808 17]
        return struct.pack('c5','abc') => !ERR user_script:1: bad argument #3 to 'pack' (string too short) @1
        return struct.pack('!3bI',1,2) => !ERR user_script:1: alignment 3 is not a power of 2 @1
        return struct.pack('y',1) => !ERR user_script:1: bad argument #1 to 'pack' (invalid format option 'y') @1
        return struct.pack('I','x') => !ERR user_script:1: bad argument #2 to 'pack' (number expected, got string) @1
        return struct.pack('I') => !ERR user_script:1: bad argument #2 to 'pack' (number expected, got nil) @1
        return struct.pack('i33',1) => !ERR user_script:1: integral size 33 is larger than limit of 32 @1
        return {struct.unpack('I',struct.pack('I',5))} => [5 5]
        return {struct.unpack('>I2i3',struct.pack('>I2i3',258,-5))} => [258 -5 6]
        return {struct.unpack('<hHlLbB',struct.pack('<hHlLbB',-2,2,-3,3,-1,255))} => [-2 2 -3 3 -1 255 23]
        return {struct.unpack('s','abc\0def')} => ['abc' 5]
        return {struct.unpack('Bc0','\3abcdef')} => ['abc' 5]
        return {struct.unpack('c2','abcdef',3)} => ['cd' 5]
        return {struct.unpack('I','ab')} => !ERR user_script:1: bad argument #2 to 'unpack' (data string too short) @1
        return {struct.unpack('s','ab')} => !ERR user_script:1: unfinished string in data @1
        return {struct.unpack('c0','ab')} => !ERR user_script:1: format 'c0' needs a previous size @1
        return {struct.unpack('I','abcdefgh',10)} => !ERR user_script:1: bad argument #2 to 'unpack' (data string too short) @1
        return {struct.unpack('I','abcdefgh',0)} => !ERR user_script:1: bad argument #3 to 'unpack' (offset must be 1 or greater) @1
        return {struct.size('I'),struct.size('!4bI'),struct.size('dfhl'),struct.size('c5x')} => [4 8 22 6]
        return struct.size('s') => !ERR user_script:1: bad argument #1 to 'size' (option 's' has no fixed size) @1
        return struct.size('c0') => !ERR user_script:1: bad argument #1 to 'size' (option 'c0' has no fixed size) @1
        return tostring(struct.unpack('d',struct.pack('d',0.1))) => '0.1'
        return struct.pack('I99999999999',1) => !ERR user_script:1: integral size overflow @1
        return redis.foo => nil
        return redis.sha1hex() => !ERR wrong number of arguments @1
        return redis.sha1hex(1,2) => !ERR wrong number of arguments @1
        return redis.sha1hex('abc') => 'a9993e364706816aba3e25717850c26c9cd0d89d'
        return redis.sha1hex(12) => '7b52009b64fd0a2a49e6d8a939753077792b0554'
        return redis.status_reply() => -ERR wrong number or type of arguments
        return redis.status_reply('x') => +x
        return redis.status_reply('a\r\nb') => +a  b
        redis.setresp(3.7) return 1 => 1
        redis.setresp('2.5') return 1 => 1
        return redis.pcall('get', nil).ignore_error_stats_update => nil
        return {string.match('ab','a\0b'),string.find('a\0b','a\0b'),string.find('ab','a.\0+')} => ['a' 1 1 2]
        return redis.error_reply('x') => -ERR x
        return redis.error_reply('My Err') => -My Err
        return redis.error_reply('-My Err') => -My Err
        return redis.error_reply('--My Err') => --My Err
        return redis.error_reply('-x') => -ERR x
        return redis.error_reply() => -ERR wrong number or type of arguments
        return redis.error_reply('x').err => 'ERR x'
        redis.log(1) => !ERR redis.log() requires two arguments or more. @1
        redis.log() => !ERR redis.log() requires two arguments or more. @1
        redis.log(9,'x') => !ERR Invalid log level. @1
        redis.log('x','x') => !ERR First argument must be a number (log level). @1
        redis.log(redis.LOG_DEBUG,'x',1,true) => nil
        return redis.setresp() => !ERR redis.setresp() requires one argument. @1
        return redis.setresp(4) => !ERR RESP version must be 2 or 3. @1
        return redis.setresp('3') => nil
        return redis.setresp('x') => !ERR RESP version must be 2 or 3. @1
        return redis.breakpoint() => nil
        return redis.debug('a') => nil
        return redis.set_repl(9) => !ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE. @1
        return redis.set_repl() => !ERR redis.set_repl() requires one argument. @1
        return redis.set_repl(redis.REPL_ALL) => nil
        return redis.replicate_commands() => 1
        return {redis.REPL_ALL, redis.REPL_NONE, redis.REPL_AOF, redis.REPL_SLAVE, redis.REPL_REPLICA} => [3 0 1 2 2]
        return math.random(0) => !ERR user_script:1: bad argument #1 to 'random' (interval is empty) @1
        return math.random(1,2,3) => !ERR user_script:1: wrong number of arguments @1
        return tostring(print) => !ERR user_script:1: Script attempted to access nonexistent global variable 'print' @1
        return tostring(1e15) => '1e+15'
        error({err='My Err'}) => !My Err @1
        error({err='-My Err'}) => !-My Err @1
        error({err=5}) => !5 @1
        error({}) => !ERR unknown error @1
        error('x') => !ERR user_script:1: x @1
        error('x',0) => !ERR x @1
        error('x',2) => !ERR x @1
        error() => !ERR nil @1
        error(nil) => !ERR nil @1
        error(5) => !ERR user_script:1: 5 @1
        error(true) => !ERR true @1
        error({err='x\r\ny'}) => !x  y @1
        local ok,e=pcall(error,{err='x'}) return e => 'x'
        local ok,e=pcall(error,'x') return e => 'x'
        local ok,e=pcall(error,'x',0) return e => 'x'
        local ok,e=pcall(redis.call,'nope') return e => 'ERR Unknown Redis command called from script'
        local ok,e=pcall(redis.call,'incr','k') return e => 'ERR value is not an integer or out of range'
        local ok,e=pcall(redis.call,'incr','k') return type(e) => 'string'
        local ok,e=pcall(function() return redis.call('incr','k') end) return e => 'ERR value is not an integer or out of range'
        local ok,e=pcall(function() return redis.call('incr','k') end) return {e.err, e.source or 'nil', e.line or 'nil', type(e.ignore_error_stats_update)} => []
        local e=redis.pcall('incr','k') local t={} for k,v in pairs(e) do t[#t+1]=k..tostring(v) end table.sort(t) return t => ['errERR value is not an integer or out of range' 'ignore_error_stats_updatetrue']
        local ok,e=pcall(redis.call,'incr','k') error(e) => !ERR user_script:1: ERR value is not an integer or out of range @1
        local e=redis.pcall('incr','k') error(e) => !ERR value is not an integer or out of range @1
        local e=redis.pcall('incr','k') e.err='X '..e.err return e => -X ERR value is not an integer or out of range
        local ok,e=pcall(function() local x=nil; return x.y end) return e => 'user_script:1: attempt to index local 'x' (a nil value)'
        local ok,e=pcall(function() error({code=5}) end) return e.code => 5
        return xpcall(function() error('a') end, function(e) return e..'!' end) => nil
        return {xpcall(function() error('a') end, function(e) return e..'!' end)} => [nil 'user_script:1: a!']
        return {pcall(function() return 1,2,3 end)} => [1 1 2 3]
        return redis.call('nope') => !ERR Unknown Redis command called from script @1
        return redis.pcall('nope') => -ERR Unknown Redis command called from script
        return redis.call('get') => !ERR Wrong number of args calling Redis command from script @1
        return redis.pcall({}) => -ERR Lua redis lib command arguments must be strings or integers
        return redis.pcall() => -ERR Please specify at least one argument for this redis lib call
        return redis.call() => !ERR Please specify at least one argument for this redis lib call @1
        return redis.call(nil) => !ERR Lua redis lib command arguments must be strings or integers @1
        return redis.call('get',{}) => !ERR Lua redis lib command arguments must be strings or integers @1
        return redis.call('get',true) => !ERR Lua redis lib command arguments must be strings or integers @1
        return redis.call('set','k',1.5) => +OK
        redis.call('set','k',1.5) return redis.call('get','k') => '1.5'
        redis.call('set','k',1e15) return redis.call('get','k') => '1000000000000000'
        redis.call('set','k',3.0) return redis.call('get','k') => '3'
        redis.call('set','k',-1) return redis.call('get','k') => '-1'
        redis.call('set','k',0/0) return redis.call('get','k') => '-nan'
        redis.call('set','k',1/0) return redis.call('get','k') => 'inf'
        redis.call('set','k',0.1) return redis.call('get','k') => '0.1'
        redis.call('set','k',1e100) return redis.call('get','k') => '1e+100'
        redis.call('set','k',123456789012345678) return redis.call('get','k') => '123456789012345680'
        redis.call('set','k',1e17+0.5) return redis.call('get','k') => '100000000000000000'
        redis.call('set','k',3.14159265358979) return redis.call('get','k') => '3.14159265358979'
        redis.call('set','k',1e-7) return redis.call('get','k') => '1e-7'
        return {err='a\r\nb'} => -a  b
        return {err=''} => -
        return {err='nospace'} => -nospace
        return {err='ERR x'} => -ERR x
        return {err=5} => []
        return {ok=5} => []
        return {ok='a',err='b'} => -b
        return {1,{err='x'},3} => [1 -x 3]
        return {1,redis.error_reply('y z'),3} => [1 -y z 3]
        return {double=3.5} => ,3.5
        return {map={a=1}} => %['a':1]
        return {map={}} => %[]
        return {set={a=true}} => ~['a']
        return {big_number='123'} => (123
        return {big_number='1\r\n23'} => (1  23
        return {verbatim_string={format='txt',string='hi'}} => =txt:hi
        return {verbatim_string={format='txt'}} => []
        return {verbatim_string='x'} => []
        return {double='x'} => []
        return {double='3.5'} => []
        return {map=5} => []
        return {double=1/0} => ,inf
        return {double=0.1} => ,0.1
        redis.setresp(3) return {double=3.5} => ,3.5
        redis.setresp(3) return {map={a=1}} => %['a':1]
        redis.setresp(3) return {set={a=true}} => ~['a']
        redis.setresp(3) return true => #true
        redis.setresp(3) return false => #false
        redis.setresp(3) return nil => nil
        redis.setresp(3) return {true,false,nil,1} => [#true #false]
        redis.setresp(3) return {true,false,1} => [#true #false 1]
        redis.setresp(3) return redis.call('get','none') => nil
        redis.setresp(3) return type(redis.call('get','none')) => 'nil'
        redis.setresp(2) return type(redis.call('get','none')) => 'boolean'
        redis.setresp(3) return {redis.call('get','none'),1} => []
        redis.setresp(3) return redis.call('set','k','x') => +OK
        redis.setresp(3) return redis.pcall('incr','k') => -ERR value is not an integer or out of range
        redis.setresp(3) return {big_number='12345678901234567890'} => (12345678901234567890
        redis.setresp(3) return {verbatim_string={format='txt',string='hi'}} => =txt:hi
        return tostring(setfenv) => !ERR user_script:1: Script attempted to access nonexistent global variable 'setfenv' @1
        setmetatable(_G,{}) => !ERR Attempt to modify a readonly table @1
        getmetatable(_G).__index=nil => !ERR user_script:1: Attempt to modify a readonly table @1
        rawset(_G,'x',1) => !ERR Attempt to modify a readonly table @1
        rawset(redis,'x',1) => !ERR Attempt to modify a readonly table @1
        local t={} rawset(t,'x',1) return t.x => 1
        return rawget(_G,'x') => nil
        _G.x=1 => !ERR user_script:1: Attempt to modify a readonly table @1
        _G.redis=1 => !ERR user_script:1: Attempt to modify a readonly table @1
        redis=1 => !ERR user_script:1: Attempt to modify a readonly table @1
        redis.call=1 => !ERR user_script:1: Attempt to modify a readonly table @1
        string.x=1 => !ERR user_script:1: Attempt to modify a readonly table @1
        return dofile => !ERR user_script:1: Script attempted to access nonexistent global variable 'dofile' @1
        return io => !ERR user_script:1: Script attempted to access nonexistent global variable 'io' @1
        return newproxy => !ERR user_script:1: Script attempted to access nonexistent global variable 'newproxy' @1
        return require => !ERR user_script:1: Script attempted to access nonexistent global variable 'require' @1
        return debug => !ERR user_script:1: Script attempted to access nonexistent global variable 'debug' @1
        return package => !ERR user_script:1: Script attempted to access nonexistent global variable 'package' @1
        return tostring(module) => !ERR user_script:1: Script attempted to access nonexistent global variable 'module' @1
        x=5 => !ERR user_script:1: Attempt to modify a readonly table @1
        local function f() x=5 end f() => !ERR user_script:1: Attempt to modify a readonly table @1
        return x => !ERR user_script:1: Script attempted to access nonexistent global variable 'x' @1
        function f() end => !ERR user_script:1: Attempt to modify a readonly table @1
        return {f()} => !ERR user_script:1: Script attempted to access nonexistent global variable 'f' @1
        return _VERSION => 'Lua 5.1'
        return tostring(nil)..tostring(true)..tostring(1.5)..tostring(-0) => 'niltrue1.5-0'
        return 1<'2' => !ERR user_script:1: attempt to compare number with string @1
        return {}<{} => !ERR user_script:1: attempt to compare two table values @1
        return #nil => !ERR user_script:1: attempt to get length of a nil value @1
        local a return a.b.c => !ERR user_script:1: attempt to index local 'a' (a nil value) @1
        local a={} return a.b.c => !ERR user_script:1: attempt to index field 'b' (a nil value) @1
        return ('x')() => !ERR user_script:1: attempt to call a string value @1
        <LF><LF>return x => !ERR user_script:3: Script attempted to access nonexistent global variable 'x' @3
        <LF>error('x') => !ERR user_script:2: x @2
        <LF>error({err='A b'}) => !A b @2
        local a = 1<LF>return redis.call('incr','k') => !ERR value is not an integer or out of range @2
        return {KEYS,ARGV} => [['k' 'k2'] ['a' '5']]
        return string.format('%d %s %q %5.2f','3','x','a"b',1.234) => '3 x "a\"b"  1.23'
        return string.format('%d','x') => !ERR user_script:1: bad argument #2 to 'format' (number expected, got string) @1
        return string.format('%y',1) => !ERR user_script:1: invalid option '%y' to 'format' @1
        return ('x'):rep(3) => 'xxx'
        return ('x'):rep(-1) => ''
        return ('abc'):find('b',1,true) => 2
        return {('abc'):find('(b)')} => [2 2 'b']
        return ('abc'):gsub('b','%0%0') => 'abbc'
        return ('abc'):gsub('b','%2') => !ERR user_script:1: invalid capture index @1
        return ('abc'):find('[a') => !ERR user_script:1: malformed pattern (missing ']') @1
        return ('abc'):match('%') => !ERR user_script:1: malformed pattern (ends with '%') @1
        return string.byte('abc',1,-1) => 97
        return {string.byte('abc',1,-1)} => [97 98 99]
        return string.char(65,66) => 'AB'
        return string.char(256) => !ERR user_script:1: bad argument #1 to 'char' (invalid value) @1
        return string.sub() => !ERR user_script:1: bad argument #1 to 'sub' (string expected, got no value) @1
        return ('x').foo => nil
        return table.concat({1,2,3},',') => '1,2,3'
        return table.concat({1,{},3},',') => !ERR user_script:1: invalid value (table) at index 2 in table for 'concat' @1
        return table.concat({1,2,3},',',2,5) => !ERR user_script:1: invalid value (nil) at index 4 in table for 'concat' @1
        local t={3,1,2} table.sort(t) return t => [1 2 3]
        local t={3,1,2} table.sort(t,function(a,b) return a>b end) return t => [3 2 1]
        local t={1,2,3} table.remove(t,1) return t => [2 3]
        local t={1,2,3} return table.remove(t) => 3
        local t={} table.insert(t,1,2,3) => !ERR user_script:1: wrong number of arguments to 'insert' @1
        table.insert(nil,1) => !ERR user_script:1: bad argument #1 to 'insert' (table expected, got nil) @1
        return table.maxn({1,2,[10]=3}) => 10
        return unpack({1,2,3}) => 1
        return {unpack({1,2,3},2)} => [2 3]
        return tonumber('0x1f') => 31
        return tonumber('z',36) => 35
        return tonumber({}) => nil
        return tonumber('1e2') => 100
        return next({}) => nil
        return {next({5})} => [1 5]
        return type(ipairs) => 'function'
        for i,v in ipairs(nil) do end => !ERR user_script:1: bad argument #1 to 'ipairs' (table expected, got nil) @1
        return math.floor(-3.5) => -4
        return math.fmod(-5,3) => -2
        return math.pow(2,10) => 1024
        return math.pi => 3
        return tostring(math.pi) => '3.1415926535898'
        return 0/0 => -9223372036854775808
        return 1e308*10 => -9223372036854775808
        return tostring(2^53) => '9.007199254741e+15'
        return 10%3 + -10%3 => 3
        local s='' for w in ('a,b,c'):gmatch('[^,]+') do s=s..w end return s => 'abc'
        local s='' for k,v in ('a=1,b=2'):gmatch('(%w+)=(%w+)') do s=s..k..v end return s => 'a1b2'
        return ('x'):len() => 1
        return ('%a'):upper():lower():reverse() => 'a%'
        goto x => -ERR Error compiling script (new function): user_script:1: '=' expected near 'x'
        return 'unfinished => -ERR Error compiling script (new function): user_script:1: unfinished string near '<eof>'
        return } => -ERR Error compiling script (new function): user_script:1: unexpected symbol near '}'
        x = = 5 => -ERR Error compiling script (new function): user_script:1: unexpected symbol near '='
        local function f( return 1 => -ERR Error compiling script (new function): user_script:1: <name> or '...' expected near 'return'
        return 1 2 => -ERR Error compiling script (new function): user_script:1: '<eof>' expected near '2'
        if true then => -ERR Error compiling script (new function): user_script:1: 'end' expected near '<eof>'
        return [[a => -ERR Error compiling script (new function): user_script:1: unfinished long string near '<eof>'
        b]] => -ERR Error compiling script (new function): user_script:1: '=' expected near ']'
        return cjson => []
        return type(cjson) => 'table'
        return type(bit) => 'table'
        return arg => !ERR user_script:1: Script attempted to access nonexistent global variable 'arg' @1
        local function f(...) return arg.n end return f(1,2,3) => 3
        return getfenv => !ERR user_script:1: Script attempted to access nonexistent global variable 'getfenv' @1
        return setmetatable({},{__index=function(t,k) return k..'!' end}).foo => 'foo!'
        return setmetatable({},{__call=function(self,x) return x end})(7) => 7
        return tostring(setmetatable({},{__tostring=function() return 'T' end})) => 'T'
        return setmetatable({1,2},{__len=function() return 5 end}) => [1 2]
        local t=setmetatable({},{__eq=function() return true end}) return t==t => 1
        local m={__lt=function() return true end} return setmetatable({},m)<setmetatable({},m) => 1
        local m={__concat=function() return 'c' end} return setmetatable({},m)..'x' => 'c'
        local m={__unm=function() return 'neg' end} return -setmetatable({},m) => 'neg'
        setmetatable({},{__metatable=1}) => nil
        return getmetatable(setmetatable({},{__metatable=1})) => 1
        setmetatable(setmetatable({},{__metatable=1}),{}) => !ERR user_script:1: cannot change a protected metatable @1
        return pairs(nil) => !ERR user_script:1: bad argument #1 to 'pairs' (table expected, got nil) @1
        return redis.call('mget','k','k2') => ['v' nil]
        return redis.call('set','k','x','nx') => nil
        return redis.call('set','k','x','px','0') => !ERR invalid expire time in 'set' command @1
        return redis.call('set','k','x','foo') => !ERR syntax error @1
        return redis.call('pttl','k') => -1
        return redis.call('incr','k') => !ERR value is not an integer or out of range @1
        return redis.call('del') => !ERR Wrong number of args calling Redis command from script @1
        return redis.call('type','k') => +string
        return redis.call('type','k').ok => 'string'
        return type(redis.call('type','k')) => 'table'
        return redis.call('type','k')['ok'] => 'string'
        return type(redis.REDIS_VERSION) => 'string'

        "#,
    );
}
