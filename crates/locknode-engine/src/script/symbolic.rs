//! Runs a script on symbols instead of values, in one assumed state of its key.
//!
//! It understands only what lock scripts do with one key, and a trial gives up on anything else.
//! That makes it sound: whatever the values behind the symbols are, the script does what the trial
//! observed.

use crate::script::answer::{Answer, Unit, Write};
use crate::script::ast::{Block, Expression, Statement};

/// What the key holds when the script starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Absent,
    Own,
    Foreign,
}

pub(super) const STATES: [State; 3] = [State::Absent, State::Own, State::Foreign];

/// A value of which only this is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Symbol<'c> {
    Nil,
    False,
    True,
    Number(i64),
    Text(&'c [u8]),
    Key,
    /// An argument, counted from 1. Argument 1 is the token.
    Argument(usize),
    /// A value that is not the token.
    OtherToken,
}

impl Symbol<'_> {
    fn is_true(self) -> bool {
        !matches!(self, Self::Nil | Self::False)
    }

    pub(super) fn answer(self) -> Option<Answer> {
        match self {
            Self::Nil | Self::False => Some(Answer::Nil),
            Self::True => Some(Answer::Integer(1)),
            Self::Number(value) => Some(Answer::Integer(value)),
            _ => None,
        }
    }
}

/// One run on symbols, and what the script did in it. Every method gives up with `None`.
#[derive(Debug)]
pub(super) struct Trial<'c> {
    state: State,
    slots: Vec<Symbol<'c>>,
    /// The one write of the script.
    pub(super) write: Option<Write>,
    pub(super) answer: Symbol<'c>,
    /// The highest argument that was used.
    pub(super) arguments: usize,
}

impl<'c> Trial<'c> {
    pub(super) fn run(script: &'c Block<'c>, locals: usize, state: State) -> Option<Self> {
        let mut trial = Self {
            state,
            slots: vec![Symbol::Nil; locals],
            write: None,
            answer: Symbol::Nil,
            arguments: 0,
        };
        trial.answer = trial.block(script)?.unwrap_or(Symbol::Nil);
        Some(trial)
    }

    /// Runs statements; the inner option is the returned value, if any.
    fn block(&mut self, block: &'c Block<'c>) -> Option<Option<Symbol<'c>>> {
        for statement in block {
            let returned = match statement {
                Statement::Local {
                    slot,
                    count,
                    values,
                } => {
                    self.local(*slot, *count, values)?;
                    None
                }
                Statement::Assign { slot, value } => {
                    let value = self.value(value)?;
                    *self.slots.get_mut(*slot)? = value;
                    None
                }
                Statement::Call(arguments) => {
                    self.call(arguments)?;
                    None
                }
                Statement::Do(body) => self.block(body)?,
                Statement::If { arms, otherwise } => self.branch(arms, otherwise)?,
                Statement::Return(None) => Some(Symbol::Nil),
                Statement::Return(Some(value)) => Some(self.value(value)?),
            };
            if returned.is_some() {
                return Some(returned);
            }
        }
        Some(None)
    }

    fn branch(
        &mut self,
        arms: &'c [(Expression<'c>, Block<'c>)],
        otherwise: &'c Block<'c>,
    ) -> Option<Option<Symbol<'c>>> {
        for (condition, body) in arms {
            if self.value(condition)?.is_true() {
                return self.block(body);
            }
        }
        self.block(otherwise)
    }

    fn local(&mut self, slot: usize, count: usize, values: &'c [Expression<'c>]) -> Option<()> {
        if values.len() > count || (values.len() < count && !values.is_empty()) {
            return None;
        }
        let values = values.iter().map(|value| self.value(value));
        let mut values = values.collect::<Option<Vec<_>>>()?;
        values.resize(count, Symbol::Nil);
        self.slots
            .get_mut(slot..slot + count)?
            .copy_from_slice(&values);
        Some(())
    }

    fn value(&mut self, expression: &'c Expression<'c>) -> Option<Symbol<'c>> {
        Some(match expression {
            Expression::Nil => Symbol::Nil,
            Expression::True => Symbol::True,
            Expression::False => Symbol::False,
            Expression::Number(value) => Symbol::Number(*value),
            Expression::Text(text) => Symbol::Text(text),
            Expression::Local(slot) => *self.slots.get(*slot)?,
            Expression::Key(1) => Symbol::Key,
            Expression::Key(_) => return None,
            Expression::Argument(at) => {
                let at = usize::try_from(*at).ok().filter(|&at| at > 0)?;
                self.arguments = self.arguments.max(at);
                Symbol::Argument(at)
            }
            Expression::Call(arguments) => self.call(arguments)?,
            Expression::Not(inner) => truth(!self.value(inner)?.is_true()),
            Expression::And(left, right) | Expression::Or(left, right) => {
                let left = self.value(left)?;
                let goes_on = matches!(expression, Expression::And(..));
                if left.is_true() == goes_on {
                    self.value(right)?
                } else {
                    left
                }
            }
            Expression::Compare(operator, left, right) => {
                let left = self.value(left)?;
                let right = self.value(right)?;
                truth(compare(operator, left, right)?)
            }
        })
    }

    fn call(&mut self, words: &'c [Expression<'c>]) -> Option<Symbol<'c>> {
        let [Expression::Text(name), arguments @ ..] = words else {
            return None;
        };
        // After the write, the state is no longer the one that the trial assumes.
        if self.write.is_some() {
            return None;
        }
        let arguments = arguments.iter().map(|value| self.value(value));
        let arguments = arguments.collect::<Option<Vec<_>>>()?;
        let name = name.to_ascii_lowercase();
        match (name.as_slice(), arguments.as_slice()) {
            (b"get", [Symbol::Key]) => Some(match self.state {
                State::Absent => Symbol::False,
                State::Own => Symbol::Argument(1),
                State::Foreign => Symbol::OtherToken,
            }),
            (b"exists", [Symbol::Key]) => {
                Some(Symbol::Number(i64::from(self.state != State::Absent)))
            }
            (b"del" | b"unlink", [Symbol::Key]) => self.owned_write(Write::Delete),
            (b"pexpire", [Symbol::Key, Symbol::Argument(2)]) => {
                self.owned_write(Write::Expire(Unit::Millis))
            }
            (b"expire", [Symbol::Key, Symbol::Argument(2)]) => {
                self.owned_write(Write::Expire(Unit::Seconds))
            }
            _ => None,
        }
    }

    /// A write that returns 1 because the key exists.
    fn owned_write(&mut self, write: Write) -> Option<Symbol<'c>> {
        if self.state != State::Own {
            return None;
        }
        self.write = Some(write);
        Some(Symbol::Number(1))
    }
}

fn truth<'c>(value: bool) -> Symbol<'c> {
    if value { Symbol::True } else { Symbol::False }
}

fn compare(operator: &str, left: Symbol<'_>, right: Symbol<'_>) -> Option<bool> {
    match (operator, left, right) {
        ("==", ..) => equal(left, right),
        ("~=", ..) => equal(left, right).map(|equal| !equal),
        ("<", Symbol::Number(left), Symbol::Number(right)) => Some(left < right),
        ("<=", Symbol::Number(left), Symbol::Number(right)) => Some(left <= right),
        (">", Symbol::Number(left), Symbol::Number(right)) => Some(left > right),
        (">=", Symbol::Number(left), Symbol::Number(right)) => Some(left >= right),
        _ => None,
    }
}

fn equal(left: Symbol<'_>, right: Symbol<'_>) -> Option<bool> {
    use Symbol::{Argument, False, Nil, Number, OtherToken, Text, True};
    match (left, right) {
        (Argument(left), Argument(right)) => (left == right).then_some(true),
        (OtherToken, Argument(1)) | (Argument(1), OtherToken) => Some(false),
        (Number(left), Number(right)) => Some(left == right),
        (Text(left), Text(right)) => Some(left == right),
        (Nil | False | True, Nil | False | True) => Some(left == right),
        // Values of different types are never equal; arguments and tokens are strings.
        (Nil | False | True | Number(_), Argument(_) | OtherToken | Text(_))
        | (Argument(_) | OtherToken | Text(_), Nil | False | True | Number(_))
        | (Nil | False | True, Number(_))
        | (Number(_), Nil | False | True) => Some(false),
        _ => None,
    }
}
