//! Runs the behaviours of known lock scripts: each looks at a key, does something, and answers.
//!
//! Most behaviours are a row of a table, [`Cases`]: what to do when the key is free, when the
//! caller holds it and when somebody else does. Commands run through the same [`Caller`] as those
//! of any script, with Redis's errors.

use locknode_resp::Protocol;
use smallvec::SmallVec;

use crate::script::answer::{Answer, Unit, Write};
use crate::script::shape::Shape;
use crate::script::{Caller, ScriptError, Value, decode};

/// What a script does, written in Rust.
#[derive(Clone, Copy, Debug)]
pub(super) enum Behaviour {
    /// One operation on the table.
    Shape(Shape),
    /// Commands that depend on who holds `KEYS[1]`.
    Cases(Cases),
    /// Commands one after another; the reply of the first.
    Sequence(&'static [&'static [Word]]),
    /// Anything else.
    Steps(fn(&mut Native<'_>) -> Outcome),
}

/// What a script does with `KEYS[1]` in each state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cases {
    /// What the holder's token is compared with.
    pub(super) token: Word,
    pub(super) absent: Step,
    pub(super) own: Step,
    pub(super) foreign: Step,
}

/// A command, if any, and the answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) command: &'static [Word],
    pub(super) answer: Say,
}

/// A word of a command.
#[derive(Clone, Copy, Debug)]
pub(super) enum Word {
    Is(&'static str),
    /// `KEYS[n]`.
    Key(usize),
    /// `ARGV[n]`.
    Arg(usize),
}

/// The answer of a step.
#[derive(Clone, Copy, Debug)]
pub(super) enum Say {
    /// The reply of the command.
    Reply,
    /// The reply of the command if it is positive, otherwise 0.
    Positive,
    /// 1 if the command did something, 0 if its reply is null.
    Done,
    Integer(i64),
    Nil,
    Text(&'static str),
    Status(&'static str),
    Error(&'static str),
}

pub(super) type Outcome = Result<Value, ScriptError>;

/// A running behaviour.
pub(super) struct Native<'a> {
    pub(super) keys: &'a [&'a [u8]],
    pub(super) args: &'a [&'a [u8]],
    caller: &'a mut dyn Caller,
    reply: Vec<u8>,
    calls: usize,
}

impl Behaviour {
    /// Runs the behaviour.
    pub(super) fn run(self, keys: &[&[u8]], args: &[&[u8]], caller: &mut dyn Caller) -> Outcome {
        let mut native = Native {
            keys,
            args,
            caller,
            reply: Vec::new(),
            calls: 0,
        };
        let outcome = match self {
            Self::Shape(shape) => native.cases(Cases::of(shape)),
            Self::Cases(cases) => native.cases(cases),
            Self::Sequence(commands) => native.sequence(commands),
            Self::Steps(steps) => steps(&mut native),
        };
        let steps = native.calls.saturating_mul(CALL_STEPS);
        native.caller.note_steps(steps);
        outcome
    }
}

impl Cases {
    /// The cases of a shape, for calls that its fast path leaves.
    const fn of(shape: Shape) -> Self {
        const fn say(answer: Answer) -> Say {
            match answer {
                Answer::Integer(n) => Say::Integer(n),
                Answer::Nil => Say::Nil,
            }
        }
        let command = match shape.write {
            Write::Delete => DELETE,
            Write::Expire(Unit::Millis) => PEXPIRE,
            Write::Expire(Unit::Seconds) => EXPIRE,
        };
        Self {
            token: Word::Arg(1),
            absent: say(shape.absent).alone(),
            own: run(command, say(shape.held)),
            foreign: say(shape.mismatch).alone(),
        }
    }
}

impl Say {
    /// A step that does nothing.
    pub(super) const fn alone(self) -> Step {
        run(&[], self)
    }
}

/// A step that runs a command.
pub(super) const fn run(command: &'static [Word], answer: Say) -> Step {
    Step { command, answer }
}

pub(super) const DELETE: &[Word] = &[Word::Is("del"), Word::Key(1)];
pub(super) const PEXPIRE: &[Word] = &[Word::Is("pexpire"), Word::Key(1), Word::Arg(2)];
pub(super) const EXPIRE: &[Word] = &[Word::Is("expire"), Word::Key(1), Word::Arg(2)];

impl<'a> Native<'a> {
    fn cases(&mut self, cases: Cases) -> Outcome {
        let holder = self.get(1)?;
        let step = match holder {
            None => cases.absent,
            Some(holder) if self.word(cases.token) == Some(&holder) => cases.own,
            Some(_) => cases.foreign,
        };
        let reply = if step.command.is_empty() {
            Value::Nil
        } else {
            self.command(step.command)?
        };
        Ok(match (step.answer, reply) {
            (Say::Reply, reply) => reply,
            (Say::Positive, reply) => Value::Integer(integer(&reply).max(0)),
            (Say::Done, Value::Nil) => Value::Integer(0),
            (Say::Done, _) => Value::Integer(1),
            (Say::Integer(n), _) => Value::Integer(n),
            (Say::Nil, _) => Value::Nil,
            (Say::Text(text), _) => Value::Bulk(text.into()),
            (Say::Status(text), _) => Value::Status(text.into()),
            (Say::Error(text), _) => Value::Error(text.into()),
        })
    }

    fn sequence(&mut self, commands: &[&[Word]]) -> Outcome {
        let mut first = None;
        for command in commands {
            let reply = self.command(command)?;
            first.get_or_insert(reply);
        }
        Ok(first.unwrap_or(Value::Nil))
    }

    fn word(&self, word: Word) -> Option<&'a [u8]> {
        match word {
            Word::Is(text) => Some(text.as_bytes()),
            Word::Key(number) => self.keys.get(number - 1).copied(),
            Word::Arg(number) => self.arg(number),
        }
    }

    /// Returns `ARGV[number]`.
    pub(super) fn arg(&self, number: usize) -> Option<&'a [u8]> {
        self.args.get(number - 1).copied()
    }

    /// Runs a command of this call's keys and arguments.
    pub(super) fn command(&mut self, words: &[Word]) -> Outcome {
        let words: SmallVec<[_; 8]> = words.iter().map(|&word| self.word(word)).collect();
        self.call_some(&words)
    }

    /// Runs a command of which a word may be missing, because the client sent too few.
    pub(super) fn call_some(&mut self, words: &[Option<&[u8]>]) -> Outcome {
        let words: Option<SmallVec<[&[u8]; 8]>> = words.iter().copied().collect();
        match words {
            Some(words) => self.call(&words),
            None => Err(ScriptError::new(NOT_A_WORD.into(), 1)),
        }
    }

    /// Runs a command; an error reply ends the script.
    pub(super) fn call(&mut self, words: &[&[u8]]) -> Outcome {
        match self.call_protected(words) {
            Value::Error(text) => Err(ScriptError::new(text, 1)),
            value => Ok(value),
        }
    }

    /// Runs a command and returns its reply, whatever it is.
    pub(super) fn call_protected(&mut self, words: &[&[u8]]) -> Value {
        self.calls += 1;
        self.reply.clear();
        self.caller.call(words, Protocol::Resp2, &mut self.reply);
        decode::value(&self.reply)
    }

    /// Reads `KEYS[number]`; `None` when it is free.
    pub(super) fn get(&mut self, number: usize) -> Result<Option<Vec<u8>>, ScriptError> {
        let holder = self.command(&[Word::Is("get"), Word::Key(number)])?;
        Ok(text(holder))
    }
}

/// The text of a bulk reply.
pub(super) fn text(value: Value) -> Option<Vec<u8>> {
    match value {
        Value::Bulk(text) => Some(text),
        _ => None,
    }
}

/// The number of an integer reply.
pub(super) const fn integer(value: &Value) -> i64 {
    match value {
        Value::Integer(n) => *n,
        _ => 0,
    }
}

/// What Redis says of an argument that is neither a string nor a number.
pub(super) const NOT_A_WORD: &str =
    "ERR Lua redis lib command arguments must be strings or integers";

/// What a command costs in the steps that make a connection yield.
const CALL_STEPS: usize = 8;
