//! Random Lua: expressions of everything that a script may use, and what Redis makes of their values.

use crate::difference::Peculiarities;
use crate::interleaving::words;
use crate::node::Node;
use crate::sequence::{Dice, Request};
use crate::server::Server;
use crate::{report, rounds, seed};

#[test]
fn scripts_return_what_they_do_on_a_real_server() {
    let Some(mut server) = Server::start() else {
        return;
    };
    let node = Node::new(1);
    let peculiarities = Peculiarities::of(&mut server);
    let mut compared = 0;
    for number in 0..rounds(SEQUENCES) {
        let seed = seed().wrapping_add(number);
        let mut dice = Dice::new(seed);
        let mut requests: Vec<Request> = (0..SCRIPTS).map(|_| eval(&mut dice)).collect();
        if peculiarities.is_valkey {
            requests.retain(|request| !request.to_string().contains("pcall"));
        }
        compared += requests.len();
        let mut mismatch =
            |requests: &[Request]| first_mismatch((&mut server, &node), &peculiarities, requests);
        if let Some(first) = mismatch(&requests) {
            println!("LOCKNODE_TEST_SEED={seed}: {first}");
            report(seed, requests, mismatch);
        }
    }
    println!("{compared} scripts compared with {}", peculiarities.version);
}

/// What differs first, in words. Of errors, only that there is one is compared: functions that are rewritten word some
/// of them in another way.
fn first_mismatch(
    (server, node): (&mut Server, &Node),
    peculiarities: &Peculiarities,
    requests: &[Request],
) -> Option<String> {
    let (theirs, ours) = (server.run(requests), node.run(requests));
    let mut replies = requests.iter().zip(theirs.iter().zip(&ours));
    replies.find_map(|(request, (theirs, ours))| {
        let are_errors = theirs.starts_with(b"-") && ours.starts_with(b"-");
        (!are_errors && !peculiarities.allow(request, theirs, ours)).then(|| {
            let [theirs, ours] = [theirs, ours].map(|it| it.escape_ascii());
            format!("{request}\n  real: {theirs}\n  ours: {ours}")
        })
    })
}

/// EVAL of a random script, or a greeting that changes what its values become.
fn eval(dice: &mut Dice) -> Request {
    if dice.one_in(12) {
        let protocol = dice.pick(&["2", "3"]);
        return words(&["HELLO", protocol]);
    }
    let mut script = PRELUDE.to_owned();
    for _ in 0..dice.below(3) {
        script += &expand(dice, &STATEMENTS, 2);
        script.push('\n');
    }
    let depth = 1 + dice.below(3);
    script += &format!("return {}", expand(dice, &RESULTS, depth));
    let command = if dice.one_in(8) { "EVAL_RO" } else { "EVAL" };
    words(&[
        command,
        &script,
        "1",
        dice.pick(&["k", "h", "l"]),
        dice.pick(&["7", "x", ""]),
    ])
}

/// One of the forms, with something for each `@`.
fn expand(dice: &mut Dice, forms: &[&str], depth: usize) -> String {
    let form = dice.pick(forms);
    let mut parts = form.split('@');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let inner = if depth == 0 || dice.one_in(4) {
            dice.pick(&VALUES).to_owned()
        } else {
            expand(dice, &EXPRESSIONS, depth - 1)
        };
        text += &inner;
        text += part;
    }
    text
}

/// `T` shows anything but the address of a table or a function.
const PRELUDE: &str = "local x, y = 1, 'y'
local function T(v) local t = type(v) if t == 'table' or t == 'function' then return t end return tostring(v) end
";

const RESULTS: [&str; 12] = [
    "@",
    "@",
    "{@, @}",
    "{@, {@, @}, @}",
    "{ok = @}",
    "{err = @}",
    "{@, nil, @}",
    "{T(@), T(@)}",
    "{double = @}",
    "{map = {a = @}}",
    "{set = {[@] = true}}",
    "@, @",
];

const STATEMENTS: [&str; 20] = [
    "x = @",
    "y = @",
    "x = {@, @}",
    "if @ then x = @ else y = @ end",
    "for i = 1, 3 do x = @ end",
    "for i, v in ipairs({@, @}) do y = v end",
    "while #T(x) < 5 do x = T(x) .. 'z' end",
    "redis.call('set', KEYS[1], T(@))",
    "redis.call('hset', 'h', T(@), T(@))",
    "redis.call('rpush', 'l', T(@), T(@))",
    "redis.pcall('del', T(@))",
    "redis.setresp(@)",
    "redis.setresp(3)",
    "local f = function(...) return select('#', ...), ... end x = {f(@, @)}",
    "x = (pcall(function() return @ end))",
    "z = @",
    "local t = {3, 1, 2} table.sort(t, function(a, b) return a > b end) x = t",
    "redis.log(redis.LOG_DEBUG, T(@))",
    "error(T(@))",
    "assert(@, T(@))",
];

/// What stands for `@` where nothing more is to be in it.
const VALUES: [&str; 34] = [
    "x",
    "y",
    "KEYS[1]",
    "ARGV[1]",
    "#ARGV",
    "nil",
    "true",
    "false",
    "0",
    "1",
    "-1",
    "3.7",
    "-3.2",
    "1e15",
    "1e100",
    "2^53",
    "0/0",
    "1/0",
    "0x10",
    "'a'",
    "''",
    "'7'",
    "' 8 '",
    "'0x1f'",
    "'a\\0b'",
    "'a\\r\\nb'",
    "'[1,2.5,{\"a\":null}]'",
    "{}",
    "{1, 2, 3}",
    "{a = 1}",
    "{1, nil, 3}",
    "{[3] = 'c'}",
    "math.pi",
    "'%d+'",
];

const EXPRESSIONS: [&str; 96] = [
    "@ + @",
    "@ - @",
    "@ * @",
    "@ / @",
    "@ % @",
    "@ ^ @",
    "-@",
    "#@",
    "not @",
    "@ .. @",
    "@ == @",
    "@ < @",
    "@ <= @",
    "@ and @",
    "@ or @",
    "(@)",
    "({@, @})[@]",
    "({@, @})[1]",
    "type(@)",
    "T(@)",
    "tonumber(@)",
    "tonumber(@, 16)",
    "tostring(#T(@))",
    "select(2, @, @)",
    "(unpack({@, @}))",
    "(next({@}))",
    "rawequal(@, @)",
    "rawget({@}, 1)",
    "pcall(redis.call, 'get', @)",
    "(pcall(function() return @ .. @ end))",
    "string.format('%d', @)",
    "string.format('%5.2f|%s', @, T(@))",
    "string.format('%q', T(@))",
    "string.format('%x %g', @, @)",
    "string.rep(T(@), 3)",
    "string.sub(T(@), @, @)",
    "string.sub(T(@), 2)",
    "string.find(T(@), T(@))",
    "string.find(T(@), T(@), 1, true)",
    "string.match(T(@), '%w+')",
    "string.match(T(@), @)",
    "(string.gsub(T(@), '%d', '<%0>'))",
    "(string.gsub(T(@), '(.)', {a = 'A'}))",
    "string.byte(T(@), 1, -1)",
    "string.char(65, @)",
    "string.upper(T(@))",
    "string.reverse(T(@))",
    "string.len(@)",
    "math.floor(@)",
    "math.ceil(@)",
    "math.abs(@)",
    "math.max(@, @)",
    "math.fmod(@, @)",
    "(function() math.randomseed(#T(@)) return math.random(1, 100) + math.random() end)()",
    "math.sqrt(@)",
    "table.concat({T(@), T(@)}, ',')",
    "table.concat({@, @}, '-')",
    "table.maxn({@, @})",
    "cjson.encode(@)",
    "cjson.encode({@, @})",
    "cjson.encode({a = @})",
    "cjson.decode(@)",
    "cjson.decode('[1,2,{\"a\":\"b\"},null,1.5e3,true]')",
    "cjson.decode(cjson.encode({@, @}))",
    "(cjson.decode('null') == cjson.null)",
    "cmsgpack.pack(@)",
    "cmsgpack.pack(@, @)",
    "cmsgpack.unpack(cmsgpack.pack({@, @}))",
    "cmsgpack.unpack(T(@))",
    "bit.band(@, @)",
    "bit.bor(@, 255)",
    "bit.bxor(@, @)",
    "bit.bnot(@)",
    "bit.lshift(@, 3)",
    "bit.arshift(@, 1)",
    "bit.rol(@, 4)",
    "bit.tohex(@)",
    "bit.tohex(@, -4)",
    "bit.tobit(@)",
    "struct.pack('>I2', @)",
    "struct.pack('<i4c0', @, T(@))",
    "struct.unpack('>I2', T(@))",
    "struct.size('ihd')",
    "redis.sha1hex(T(@))",
    "redis.sha1hex(@)",
    "redis.status_reply(T(@))",
    "redis.error_reply(T(@))",
    "redis.error_reply('-MINE ' .. T(@))",
    "redis.call('get', T(@))",
    "redis.call('get', KEYS[1])",
    "redis.pcall('incrby', KEYS[1], @)",
    "redis.pcall('hgetall', KEYS[1])",
    "redis.pcall('lrange', KEYS[1], 0, @)",
    "redis.pcall(T(@), @)",
    "redis.call('set', KEYS[1], @)",
    "redis.call('type', KEYS[1])",
];

/// Each pair of forms comes now and then, in a few seconds.
const SEQUENCES: u64 = 80;
const SCRIPTS: usize = 50;
