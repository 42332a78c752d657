//! Random requests: mostly sensible ones on few keys, with wrong words, numbers, counts and letters among them.

use std::fmt;

use crate::difference::Peculiarities;

/// One request and the form that it is sent in.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) words: Vec<Vec<u8>>,
    is_inline: bool,
}

impl Request {
    pub(crate) fn array(words: impl IntoIterator<Item = Vec<u8>>) -> Self {
        Self {
            words: words.into_iter().collect(),
            is_inline: false,
        }
    }

    /// The command's name in lower case.
    pub(crate) fn name(&self) -> String {
        String::from_utf8_lossy(&self.words[0]).to_lowercase()
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        if self.is_inline {
            let words: Vec<Vec<u8>> = self.words.iter().map(|word| quote(word)).collect();
            return [words.join(&b' '), b"\r\n".to_vec()].concat();
        }
        let mut bytes = format!("*{}\r\n", self.words.len()).into_bytes();
        for word in &self.words {
            bytes.extend(format!("${}\r\n", word.len()).into_bytes());
            bytes.extend(word);
            bytes.extend(b"\r\n");
        }
        bytes
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for word in &self.words {
            write!(f, "\"{}\" ", word.escape_ascii())?;
        }
        f.write_str(if self.is_inline { "(inline)" } else { "" })
    }
}

fn quote(word: &[u8]) -> Vec<u8> {
    if !word.is_empty()
        && word
            .iter()
            .all(|&byte| byte.is_ascii_alphanumeric() || byte == b':')
    {
        return word.to_vec();
    }
    let mut quoted = b"\"".to_vec();
    for byte in word {
        quoted.extend(format!("\\x{byte:02x}").into_bytes());
    }
    quoted.push(b'"');
    quoted
}

/// Random numbers from a seed: xorshift64*.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        // Seeds that are neighbours must not give sequences that are.
        Self(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).expect("a small number")
    }

    pub(crate) fn one_in(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }

    pub(crate) fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }
}

/// One random request, the `number`th of a sequence, on one of the first few keys.
pub(crate) fn one(dice: &mut Dice, number: u64, peculiarities: &Peculiarities) -> Request {
    let mut author = Author {
        dice,
        peculiarities,
        ttls: number * 10,
    };
    author.request()
}

/// A random sequence; it ends by asking for the state of every key.
pub(crate) fn random(dice: &mut Dice, len: usize, peculiarities: &Peculiarities) -> Vec<Request> {
    let mut author = Author {
        dice,
        peculiarities,
        ttls: 0,
    };
    let mut requests: Vec<Request> = (0..len).map(|_| author.request()).collect();
    for key in KEYS {
        for command in ["GET", "PTTL", "EXPIRETIME"] {
            requests.push(Request::array([command.into(), key.as_bytes().to_vec()]));
        }
    }
    requests.push(Request::array([b"DBSIZE".to_vec()]));
    requests
}

/// Keys of few letters, then patterns of those letters and all that is special in a pattern.
pub(crate) fn patterns(dice: &mut Dice, len: usize) -> Vec<Request> {
    let mut word = |alphabet: &[u8], len_min: usize| -> Vec<u8> {
        let len = len_min + dice.below(7);
        (0..len)
            .map(|_| alphabet[dice.below(alphabet.len())])
            .collect()
    };
    let keys: Vec<_> = (0..30).map(|_| word(b"aab-]^", 0)).collect();
    let patterns: Vec<_> = (0..len).map(|_| word(b"aab-]^***??[[\\", 1)).collect();
    let sets = keys
        .into_iter()
        .map(|key| Request::array([b"SET".to_vec(), key, b"1".to_vec()]));
    let asks = patterns
        .into_iter()
        .map(|pattern| Request::array([b"KEYS".to_vec(), pattern]));
    sets.chain(asks).collect()
}

struct Author<'d> {
    dice: &'d mut Dice,
    peculiarities: &'d Peculiarities,
    /// How many TTLs were given out: no two in a sequence are alike, because the clocks of the two sides are not.
    ttls: u64,
}

type Words = Vec<String>;

impl Author<'_> {
    fn request(&mut self) -> Request {
        let mut words = loop {
            let words = self.command();
            if self.peculiarities.has_command(&words[0]) {
                break words;
            }
        };
        // AUTH with a user is left out: Redis 8.0 loses its reply when it is not the first command that it reads.
        if self.dice.one_in(25) && words[0] != "AUTH" {
            let at = self.dice.below(words.len() + 1);
            let word = self.dice.pick(&["NX", "foo", "", "0", "a\r\nb"]).to_owned();
            words.insert(at.max(1), word);
        }
        if words.len() > 1 && self.dice.one_in(25) {
            words.truncate(self.dice.below(words.len()).max(1));
        }
        for word in &mut words {
            if self.dice.one_in(4) && self.peculiarities.is_case_free(word) {
                *word = self.scramble(word);
            }
        }
        Request {
            words: words.into_iter().map(String::into_bytes).collect(),
            is_inline: self.dice.one_in(5),
        }
    }

    fn scramble(&mut self, word: &str) -> String {
        word.chars()
            .map(|c| {
                if self.dice.one_in(2) {
                    c.to_ascii_lowercase()
                } else {
                    c.to_ascii_uppercase()
                }
            })
            .collect()
    }

    fn command(&mut self) -> Words {
        match self.dice.below(40) {
            0..=9 => self.set(),
            10 => words(&["GET", self.key()]),
            11 => words(&[
                self.dice
                    .pick(&["GETDEL", "STRLEN", "TYPE", "PERSIST", "DIGEST"]),
                self.key(),
            ]),
            12 | 13 => self.getex(),
            14 => words(&["GETSET", self.key(), self.value()]),
            15 => words(&["SETNX", self.key(), self.value()]),
            16 => {
                let (command, ttl) = (self.dice.pick(&["SETEX", "PSETEX"]), self.ttl(1));
                words(&[command, self.key(), &ttl, self.value()])
            }
            17 => self.many(&["MSET", "MSETNX"], 2),
            18 => self.many(&["DEL", "UNLINK", "EXISTS", "TOUCH", "MGET"], 1),
            19 => self.msetex(),
            20 => words(&[self.dice.pick(&["INCR", "DECR"]), self.key()]),
            21 | 22 => words(&[
                self.dice.pick(&["INCRBY", "DECRBY"]),
                self.key(),
                self.number(),
            ]),
            23 => {
                let command = self.dice.pick(&["GETRANGE", "SUBSTR"]);
                words(&[command, self.key(), self.number(), self.number()])
            }
            24..=27 => self.expire(),
            28 | 29 => {
                let command = self
                    .dice
                    .pick(&["TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME"]);
                words(&[command, self.key()])
            }
            30 | 31 => self.delex(),
            32 => words(&["DELIFEQ", self.key(), self.value()]),
            33 => words(&["KEYS", self.dice.pick(&PATTERNS)]),
            34 => self.scan(),
            35 => words(&[self.dice.pick(&["RANDOMKEY", "DBSIZE", "PING"])]),
            36 => self.connection(),
            37 if self.dice.one_in(3) => {
                let word = self.dice.pick(&["SYNC", "async", "foo"]);
                words(&[self.dice.pick(&["FLUSHDB", "FLUSHALL"]), word])
            }
            37 => words(&["nosuch", self.value(), "a"]),
            38 => self.script(),
            _ => words(&["ECHO", self.value()]),
        }
    }

    fn set(&mut self) -> Words {
        let mut words = words(&["SET", self.key(), self.value()]);
        for _ in 0..self.dice.below(4) {
            match self.dice.below(9) {
                0 | 1 => words.push("NX".into()),
                2 => words.push("XX".into()),
                3 => words.push("GET".into()),
                4 => words.push("KEEPTTL".into()),
                5 => {
                    let condition = self.dice.pick(&["IFEQ", "IFNE", "IFDEQ", "IFDNE"]);
                    if self.peculiarities.has_set_option(condition) {
                        words.extend([condition.into(), self.value().into()]);
                    }
                }
                _ => self.lifetime(&mut words),
            }
        }
        words
    }

    fn getex(&mut self) -> Words {
        let mut words = words(&["GETEX", self.key()]);
        for _ in 0..self.dice.below(3) {
            match self.dice.below(4) {
                0 => words.push("PERSIST".into()),
                _ => self.lifetime(&mut words),
            }
        }
        words
    }

    fn msetex(&mut self) -> Words {
        let count = self.dice.below(3) + 1;
        let mut words = vec!["MSETEX".to_owned(), count.to_string()];
        for _ in 0..count {
            words.extend([self.key().into(), self.value().into()]);
        }
        if self.dice.one_in(2) {
            words.push(self.dice.pick(&["NX", "XX", "KEEPTTL"]).into());
        }
        if self.dice.one_in(2) {
            self.lifetime(&mut words);
        }
        words
    }

    fn many(&mut self, commands: &[&str], step: usize) -> Words {
        let mut words = vec![self.dice.pick(commands).to_owned()];
        for _ in 0..self.dice.below(3) + 1 {
            words.push(self.key().into());
            if step == 2 {
                words.push(self.value().into());
            }
        }
        words
    }

    fn lifetime(&mut self, words: &mut Words) {
        let option = self.dice.pick(&["EX", "PX", "PX", "EXAT", "PXAT"]);
        let scale = if option.starts_with('P') { 1_000 } else { 1 };
        let number = if option.ends_with("AT") {
            self.timestamp(scale)
        } else {
            self.ttl(scale)
        };
        words.extend([option.to_owned(), number]);
    }

    fn expire(&mut self) -> Words {
        let command = self
            .dice
            .pick(&["EXPIRE", "PEXPIRE", "EXPIREAT", "PEXPIREAT"]);
        let scale = if command.starts_with('P') { 1_000 } else { 1 };
        let number = match self.dice.below(8) {
            0 => self
                .dice
                .pick(&["0", "-1", "-9223372036854775808"])
                .to_owned(),
            _ if command.ends_with("AT") => self.timestamp(scale),
            _ => self.ttl(scale),
        };
        let mut words = vec![command.to_owned(), self.key().into(), number];
        for _ in 0..self.dice.below(3) {
            words.push(self.dice.pick(&["NX", "XX", "GT", "LT", "GT", "LT"]).into());
        }
        words
    }

    fn delex(&mut self) -> Words {
        let mut words = words(&["DELEX", self.key()]);
        if !self.dice.one_in(4) {
            words.push(
                self.dice
                    .pick(&["IFEQ", "IFEQ", "IFNE", "IFDEQ", "IFDNE", "foo"])
                    .into(),
            );
            words.push(self.value().into());
        }
        words
    }

    fn scan(&mut self) -> Words {
        let cursor = self
            .dice
            .pick(&["0", "0", "0", "abc", "", "18446744073709551616", "1x"]);
        let mut words = words(&["SCAN", cursor, "COUNT", "1000000"]);
        for _ in 0..self.dice.below(2) {
            match self.dice.below(3) {
                0 => words.extend(["MATCH".into(), self.dice.pick(&PATTERNS).into()]),
                1 => words.extend(["TYPE".into(), self.dice.pick(&["string", "STRING"]).into()]),
                _ => words.extend([
                    "COUNT".into(),
                    self.dice.pick(&["0", "-1", "x", "999999"]).into(),
                ]),
            }
        }
        words
    }

    fn connection(&mut self) -> Words {
        match self.dice.below(8) {
            0..=2 => words(&[
                "SELECT",
                self.dice
                    .pick(&["0", "0", "1", "15", "16", "-1", "x", "1.0"]),
            ]),
            3 => words(&["HELLO", self.dice.pick(&["2", "3", "3", "4", "x"])]),
            4 => words(&["PING", self.value()]),
            5 => words(&["AUTH", self.value()]),
            6 => words(&["CLIENT", self.dice.pick(&["GETNAME", "foo"])]),
            _ => words(&["CLIENT", "SETNAME", self.dice.pick(&["me", "a b", ""])]),
        }
    }

    fn script(&mut self) -> Words {
        let (script, arguments) = SCRIPTS[self.dice.below(SCRIPTS.len())];
        let ttl = self.ttl(1_000);
        let mut words = words(&[
            "EVAL",
            script,
            self.dice.pick(&["1", "1", "1", "1", "9", "-1", "x"]),
            self.key(),
        ]);
        words.extend([self.value().to_owned(), ttl].into_iter().take(arguments));
        words
    }

    fn key(&mut self) -> &'static str {
        self.dice.pick(&KEYS)
    }

    fn value(&mut self) -> &'static str {
        self.dice.pick(&VALUES)
    }

    fn number(&mut self) -> &'static str {
        self.dice.pick(&NUMBERS)
    }

    /// A TTL of some thousand seconds that the sequence has not used, or something that is no TTL.
    fn ttl(&mut self, scale: u64) -> String {
        if self.dice.one_in(6) {
            return self.dice.pick(&NO_TTLS).to_owned();
        }
        (self.spread() * scale).to_string()
    }

    fn timestamp(&mut self, scale: u64) -> String {
        match self.dice.below(8) {
            0 => self.number().to_owned(),
            1 => self.dice.pick(&["1", "1000", "1600000000"]).to_owned(),
            _ => ((self.peculiarities.now_secs + self.spread()) * scale).to_string(),
        }
    }

    fn spread(&mut self) -> u64 {
        self.ttls += 1;
        // 1009 is prime: the first thousand are all different, and in no order.
        1_000 * (1 + self.ttls * 389 % 1_009)
    }
}

fn words(words: &[&str]) -> Words {
    words.iter().map(|&word| word.to_owned()).collect()
}

pub(crate) const KEYS: [&str; 6] = ["a", "lock:1", "lock:2", "", "k\u{e9}y\0\r\n", "{tag}:a"];
const VALUES: [&str; 12] = [
    "a",
    "b",
    "",
    "7",
    "-9",
    "07",
    "9223372036854775807",
    "-9223372036854775808",
    "hello",
    "9555e8555c62dcfd",
    "to ken\r\n\0",
    "9555E8555C62DCFD",
];
const NUMBERS: [&str; 18] = [
    "0",
    "1",
    "-1",
    "2",
    "-3",
    "100",
    "-100",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "9223372036854775",
    "abc",
    "",
    "1.5",
    "01",
    "+1",
    " 1",
    "-0",
];
/// Refused, or past at once: a short TTL would end on one side while it lasts on the other.
const NO_TTLS: [&str; 11] = [
    "0",
    "-1",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "abc",
    "",
    "1.5",
    "01",
    "+1",
    " 1",
];
const PATTERNS: [&str; 12] = [
    "*",
    "lock:*",
    "lock:?",
    "*[12]",
    "[^l]*",
    "a",
    "\\a",
    "*a*a*b",
    "{tag}:[a-c]",
    "lock:[^1]",
    "",
    "[a",
];

/// Scripts of the shapes that lock libraries send, and how many arguments they take.
const SCRIPTS: [(&str, usize); 4] = [
    (
        "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end",
        1,
    ),
    (
        "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) else return 0 end",
        2,
    ),
    (
        "return redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])",
        2,
    ),
    (
        "return {redis.call('exists', KEYS[1]), redis.call('get', KEYS[1])}",
        0,
    ),
];
