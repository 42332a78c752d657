//! Recognises the hot shapes of lock scripts by what they do.
//!
//! A candidate runs on symbols instead of values, once for each state that its key can be in:
//! absent, holding the caller's token, holding another one. If in every state it does exactly what
//! a shape does, it is that shape, however it is written. Anything that the symbols cannot decide
//! (a loop, another key, an argument compared with a literal) means that there is no shape, and Lua
//! runs the script as it is.

use crate::script::answer::{Answer, Write};
use crate::script::parser;
use crate::script::symbolic::{STATES, Trial};

/// What a script does, if the engine has it as a native operation.
///
/// A shape applies to calls with at least one key and the arguments that it uses; the key is
/// `KEYS[1]`, the token `ARGV[1]`, the TTL `ARGV[2]`. With fewer, or with an invalid TTL,
/// [`Program::run`](crate::script::Program::run) runs the script command by command and finds the
/// exact error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// What it does to the key if it holds the token.
    pub(crate) write: Write,
    /// The answer when the key held the token.
    pub(crate) held: Answer,
    /// The answer when the key holds something else.
    pub(crate) mismatch: Answer,
    /// The answer when there is no such key.
    pub(crate) absent: Answer,
}

/// Returns the shape of a script, if it has one.
pub(super) fn recognise(source: &[u8]) -> Option<Shape> {
    let (script, locals) = parser::parse(source)?;
    let [absent, own, foreign] = STATES.map(|state| Trial::run(&script, locals, state));
    let (absent, own, foreign) = (absent?, own?, foreign?);
    if absent.write.is_some() || foreign.write.is_some() {
        return None;
    }
    let shape = Shape {
        write: own.write?,
        held: own.answer.answer()?,
        mismatch: foreign.answer.answer()?,
        absent: absent.answer.answer()?,
    };
    let arguments = match shape.write {
        Write::Delete => 1,
        Write::Expire(_) => 2,
    };
    let used = own.arguments.max(absent.arguments).max(foreign.arguments);
    (used <= arguments).then_some(shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks lines `script => write held mismatch absent`.
    fn check(table: &str) {
        for line in table.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (source, want) = line.split_once(" => ").unwrap();
            let source = source.replace("<CRLF>", "\r\n").replace("<TAB>", "\t");
            let shape = recognise(source.as_bytes()).expect(line);
            let answers = [shape.held, shape.mismatch, shape.absent].map(|answer| match answer {
                Answer::Integer(n) => n.to_string(),
                Answer::Nil => "nil".to_owned(),
            });
            let have = format!("{:?} {}", shape.write, answers.join(" "));
            assert_eq!(have, want, "{source}");
        }
    }

    #[test]
    fn releases_are_recognised_however_they_are_written() {
        check(
            r#"
            if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end => Delete 1 0 0
            if redis.call("GET", KEYS[1]) == ARGV[1]<CRLF>then<CRLF><TAB>return redis.call("DEL", KEYS[1]);<CRLF>end<CRLF>return 0 -- no => Delete 1 0 0
            if (redis['call']([[get]],KEYS[1])==(ARGV[1])) then return server.call('del',KEYS[1]) else do return 0 end end => Delete 1 0 0
            if ARGV[1]==redis.call('GET',KEYS[1]) then return redis.call('UNLINK',KEYS[1]); end; return 0 => Delete 1 0 0
            local k=KEYS[1] local v=redis.call('get',k) if not v or v~=ARGV[1] then return 0 end redis.call('del',k) return 1 => Delete 1 0 0
            local v=redis.call('get',KEYS[1]) if v==ARGV[1] then return redis.call('del',KEYS[1]) elseif v==false then return -1 else return 0 end => Delete 1 0 -1
            if redis.call('get',KEYS[1])==ARGV[1] then redis.call('del',KEYS[1]) return true end return false => Delete 1 nil nil
            if redis.call('exists',KEYS[1])==0 then return -1 end if redis.call('get',KEYS[1])~=ARGV[1] then return -2 end return redis.call('del',KEYS[1]) => Delete 1 -2 -1
            "#,
        );
    }

    #[test]
    fn extends_are_recognised_however_they_are_written() {
        check(
            "
            if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('pexpire',KEYS[1],ARGV[2]) else return 0 end => Expire(Millis) 1 0 0
            if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('expire',KEYS[1],ARGV[2]) end return nil => Expire(Seconds) 1 nil nil
            ",
        );
    }

    #[test]
    fn scripts_that_only_look_like_a_shape_have_none() {
        let rows = [
            "if redis.call('get',KEYS[1])==ARGV[2] then return redis.call('del',KEYS[1]) else return 0 end",
            "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[2]) else return 0 end",
            "if redis.call('get',KEYS[1])~=ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end",
            "if redis.call('get',KEYS[1])==ARGV[1] then redis.call('del',KEYS[1]) return redis.call('get',KEYS[1]) end return 0",
            "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else return 'no' end",
            "if ARGV[1]=='root' then return redis.call('del',KEYS[1]) end return 0",
            "if redis.call('get',KEYS[1])==ARGV[1] and ARGV[2]==ARGV[3] then return redis.call('del',KEYS[1]) end return 0",
            "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('pexpire',KEYS[1],5) else return 0 end",
            "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('pexpire',KEYS[1],ARGV[2],'GT') else return 0 end",
            "return redis.call('del',KEYS[1])",
            "return redis.call('set',KEYS[1],ARGV[1],'NX','PX',ARGV[2])",
            "return redis.call('set',KEYS[1],ARGV[1],'XX','PX',ARGV[2])",
            "if redis.call('set',KEYS[1],ARGV[1],'NX','PX',ARGV[2]) then return 1 end return 0",
            "while true do return redis.call('del',KEYS[1]) end",
            "return 1",
            // Lua refuses these.
            "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call\n('del',KEYS[1]) else return 0 end",
            "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end end",
            "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) return 0 end",
            "local redis = 1 if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) end return 0",
        ];
        for source in rows {
            assert_eq!(recognise(source.as_bytes()), None, "{source}");
        }
    }
}
