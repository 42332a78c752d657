//! The library functions of `builtin.rs`.
//!
//! `redis.call` and its relatives come first; then the few functions of Lua's own library that lock
//! scripts use, with Lua's conversions and error texts.

use sha1_smol::Sha1;

use crate::script::budget::{CALL_ARGUMENT_STEPS, CALL_STEPS, SHA1_WORK};
use crate::script::builtin::Builtin;
use crate::script::command::{self, Effect};
use crate::script::error::ScriptError;
use crate::script::evaluator::{Evaluator, as_number};
use crate::script::number;
use crate::script::operator::{append_text, holes};
use crate::script::reply;
use crate::script::value::{Datum, Table, TableId};

type Values<'r> = Result<Vec<Datum<'r>>, ScriptError>;

impl<'r> Evaluator<'r, '_> {
    /// Calls a library function.
    pub(super) fn library(
        &mut self,
        builtin: Builtin,
        arguments: Vec<Datum<'r>>,
        line: u32,
    ) -> Values<'r> {
        for argument in &arguments {
            self.convert(argument)?;
        }
        let given = Arguments {
            builtin,
            values: &arguments,
            line,
        };
        let value = match builtin {
            Builtin::Call => self.command(&arguments, true, line)?,
            Builtin::ProtectedCall => self.command(&arguments, false, line)?,
            Builtin::ErrorReply => self.error_reply(&arguments)?,
            Builtin::StatusReply => self.status_reply(&arguments)?,
            Builtin::Sha1Hex => {
                let work: usize = arguments.iter().map(Datum::text_len).sum();
                self.work(work.saturating_mul(SHA1_WORK))?;
                sha1_hex(&arguments, line)?
            }
            Builtin::ReplicateCommands => Datum::Boolean(true),
            Builtin::Log => return log(&arguments, line),
            Builtin::ToNumber => to_number(&given)?,
            Builtin::ToString => to_string(given.any(0)?, line)?,
            Builtin::Type => Datum::owned(given.any(0)?.type_name().as_bytes()),
            Builtin::Unpack => return self.unpack(&given),
            Builtin::TableInsert => return self.table_insert(&given),
            Builtin::TableCount => Datum::Number(number::count(self.list_length(&given)?.1)),
            Builtin::Floor => Datum::Number(given.number(0)?.floor()),
            Builtin::Ceil => Datum::Number(given.number(0)?.ceil()),
            Builtin::Absolute => Datum::Number(given.number(0)?.abs()),
            Builtin::Maximum => extreme(&given, |value, best| value > best)?,
            Builtin::Minimum => extreme(&given, |value, best| value < best)?,
            Builtin::Substring => substring(&given)?,
            Builtin::StringLength => Datum::Number(number::count(given.text(0)?.len())),
            Builtin::Lower => Datum::owned(&given.text(0)?.to_ascii_lowercase()),
            Builtin::Upper => Datum::owned(&given.text(0)?.to_ascii_uppercase()),
        };
        if let Datum::Text(text) = &value {
            self.spend(text.bytes().len())?;
        }
        Ok(vec![value])
    }

    /// `redis.call` raises an error reply as an error; `redis.pcall` returns it.
    fn command(
        &mut self,
        arguments: &[Datum<'r>],
        raise: bool,
        line: u32,
    ) -> Result<Datum<'r>, ScriptError> {
        let refusal = match self.refusal(arguments) {
            Some(text) => text,
            None => {
                let reply = self.send(arguments)?;
                let Some(error) = reply.strip_prefix(b"-") else {
                    return self.decoded(&reply);
                };
                error.strip_suffix(b"\r\n").unwrap_or(error).to_vec()
            }
        };
        if raise {
            return Err(ScriptError::new(refusal, line));
        }
        Ok(Datum::Table(self.add_table(reply::error_table(&refusal))?))
    }

    /// Returns why a command is not even passed on.
    fn refusal(&self, arguments: &[Datum<'r>]) -> Option<Vec<u8>> {
        let Some(name) = arguments.first() else {
            return Some(NO_ARGUMENTS.to_vec());
        };
        if !arguments
            .iter()
            .all(|value| matches!(value, Datum::Text(_) | Datum::Number(_)))
        {
            return Some(BAD_ARGUMENTS.to_vec());
        }
        let effect = match name {
            Datum::Text(name) => command::effect(name.bytes()),
            _ => None,
        };
        match effect {
            None => Some(UNKNOWN.to_vec()),
            Some(Effect::Writes) if self.read_only => Some(READ_ONLY.to_vec()),
            Some(_) => None,
        }
    }

    fn send(&mut self, arguments: &[Datum<'r>]) -> Result<Vec<u8>, ScriptError> {
        let numbers: Vec<Vec<u8>> = arguments
            .iter()
            .map(|value| match value {
                Datum::Number(value) => number::argument(*value),
                _ => Vec::new(),
            })
            .collect();
        let words: Vec<&[u8]> = arguments
            .iter()
            .zip(&numbers)
            .map(|(value, number)| match value {
                Datum::Text(text) => text.bytes(),
                _ => number.as_slice(),
            })
            .collect();
        self.steps(CALL_STEPS + words.len() * CALL_ARGUMENT_STEPS)?;
        let mut reply = Vec::with_capacity(REPLY_BYTES);
        self.caller.call(&words, &mut reply);
        let scanned_bytes = self.caller.scanned_bytes();
        self.work(reply.len().saturating_add(scanned_bytes))?;
        self.spend(reply.len())?;
        Ok(reply)
    }

    fn decoded(&mut self, bytes: &[u8]) -> Result<Datum<'r>, ScriptError> {
        let tables = &mut self.tables;
        let before = tables.len();
        let decoded = reply::decode(bytes, reply::REPLY_DEPTH_MAX, &mut |table| {
            tables.push(table);
            TableId(tables.len() - 1)
        });
        let added = self.tables.len() - before;
        self.spend(added * size_of::<Table<'_>>())?;
        match decoded {
            Some((datum, b"")) => Ok(datum),
            _ => {
                let text = b"ERR the command gave a reply that scripts can't read".to_vec();
                Err(ScriptError::new(text, self.line))
            }
        }
    }

    fn error_reply(&mut self, arguments: &[Datum<'r>]) -> Result<Datum<'r>, ScriptError> {
        let [Datum::Text(text)] = arguments else {
            return self.wrong_reply_arguments();
        };
        let text = text.bytes();
        let bare = text.strip_prefix(b"-").unwrap_or(text);
        // A single word is a text without a code.
        let message = if bare.contains(&b' ') {
            bare.to_vec()
        } else {
            [b"ERR ", bare].concat()
        };
        Ok(Datum::Table(self.add_table(reply::error_table(&message))?))
    }

    fn status_reply(&mut self, arguments: &[Datum<'r>]) -> Result<Datum<'r>, ScriptError> {
        let [Datum::Text(text)] = arguments else {
            return self.wrong_reply_arguments();
        };
        Ok(Datum::Table(
            self.add_table(reply::single(b"ok", text.bytes()))?,
        ))
    }

    /// `error_reply` and `status_reply` return this error instead of raising it.
    fn wrong_reply_arguments(&mut self) -> Result<Datum<'r>, ScriptError> {
        let table = reply::error_table(b"ERR wrong number or type of arguments");
        Ok(Datum::Table(self.add_table(table)?))
    }

    fn unpack(&mut self, given: &Arguments<'_, 'r>) -> Values<'r> {
        let table = given.table(0)?;
        let first = match given.optional_number(1)? {
            Some(first) => number::integer(first),
            None => 1,
        };
        let last = match given.optional_number(2)? {
            Some(last) => number::integer(last),
            None => i64::try_from(self.list_length(given)?.1).unwrap_or(i64::MAX),
        };
        if last < first {
            return Ok(Vec::new());
        }
        let count = last.saturating_sub(first).saturating_add(1);
        if count > UNPACK_MAX {
            return Err(ScriptError::lua(given.line, "too many results to unpack"));
        }
        let mut values = Vec::new();
        for index in first..=last {
            self.steps(1)?;
            let element = usize::try_from(index).ok().zip(self.table(table));
            values.push(element.map_or(Datum::Nil, |(index, table)| table.element(index)));
        }
        self.spend(values.len() * size_of::<Datum<'_>>())?;
        Ok(values)
    }

    fn table_insert(&mut self, given: &Arguments<'_, 'r>) -> Values<'r> {
        let (id, length) = self.list_length(given)?;
        let (position, value) = match given.values {
            [_, value] => (length + 1, value),
            [_, _, value] => {
                let position = number::index(given.number(1)?).ok_or_else(|| {
                    let what = "insert before the first element is not supported on this node";
                    ScriptError::stopped(given.line, what)
                })?;
                (position, value)
            }
            _ => {
                let what = "wrong number of arguments to 'insert'";
                return Err(ScriptError::lua(given.line, what));
            }
        };
        // Shifting costs in proportion to the elements moved.
        let moved = length.saturating_sub(position);
        self.spend((moved + 1) * size_of::<Datum<'_>>())?;
        self.work(moved * size_of::<Datum<'_>>())?;
        if let Some(table) = self.tables.get_mut(id.0) {
            table.insert(position, value.clone());
        }
        Ok(Vec::new())
    }

    /// Returns the table in the first argument, and its length.
    fn list_length(&self, given: &Arguments<'_, 'r>) -> Result<(TableId, usize), ScriptError> {
        let id = given.table(0)?;
        let length = self.table(id).map_or(Some(0), |table| table.length());
        Ok((id, length.ok_or_else(|| holes(given.line))?))
    }
}

/// The arguments of a call, with Lua's checks.
#[derive(Debug)]
struct Arguments<'a, 'r> {
    builtin: Builtin,
    values: &'a [Datum<'r>],
    line: u32,
}

impl<'r> Arguments<'_, 'r> {
    fn any(&self, at: usize) -> Result<&Datum<'r>, ScriptError> {
        self.values
            .get(at)
            .ok_or_else(|| self.bad(at, "value expected"))
    }

    fn table(&self, at: usize) -> Result<TableId, ScriptError> {
        match self.values.get(at) {
            Some(Datum::Table(id)) => Ok(*id),
            _ => Err(self.expected(at, "table")),
        }
    }

    fn number(&self, at: usize) -> Result<f64, ScriptError> {
        self.values
            .get(at)
            .and_then(as_number)
            .ok_or_else(|| self.expected(at, "number"))
    }

    fn optional_number(&self, at: usize) -> Result<Option<f64>, ScriptError> {
        match self.values.get(at) {
            None | Some(Datum::Nil) => Ok(None),
            Some(_) => self.number(at).map(Some),
        }
    }

    fn text(&self, at: usize) -> Result<Vec<u8>, ScriptError> {
        match self.values.get(at) {
            Some(Datum::Text(text)) => Ok(text.bytes().to_vec()),
            Some(Datum::Number(value)) => Ok(number::display(*value)),
            _ => Err(self.expected(at, "string")),
        }
    }

    fn expected(&self, at: usize, kind: &str) -> ScriptError {
        let got = self.values.get(at).map_or("no value", Datum::type_name);
        self.bad(at, &format!("{kind} expected, got {got}"))
    }

    fn bad(&self, at: usize, what: &str) -> ScriptError {
        let (position, name) = (at + 1, self.builtin.name());
        ScriptError::lua(
            self.line,
            &format!("bad argument #{position} to '{name}' ({what})"),
        )
    }
}

fn sha1_hex<'r>(arguments: &[Datum<'r>], line: u32) -> Result<Datum<'r>, ScriptError> {
    let [value] = arguments else {
        return Err(ScriptError::new(
            b"ERR wrong number of arguments".to_vec(),
            line,
        ));
    };
    // A value without text hashes as the empty string, as in Redis.
    let mut text = Vec::new();
    append_text(&mut text, value);
    Ok(Datum::owned(
        Sha1::from(text).digest().to_string().as_bytes(),
    ))
}

/// Checks the arguments of `redis.log` like Redis. The node has no script log, so nothing is
/// written.
fn log<'r>(arguments: &[Datum<'r>], line: u32) -> Values<'r> {
    let text: &[u8] = match arguments {
        [] | [_] => b"ERR redis.log() requires two arguments or more.",
        [level, ..] => match as_number(level) {
            Some(level) if (0..=3).contains(&number::integer(level)) => return Ok(Vec::new()),
            Some(_) => b"ERR Invalid log level.",
            None => b"ERR First argument must be a number (log level).",
        },
    };
    Err(ScriptError::new(text.to_vec(), line))
}

fn to_number<'r>(given: &Arguments<'_, 'r>) -> Result<Datum<'r>, ScriptError> {
    let value = given.any(0)?;
    if given
        .optional_number(1)?
        .is_some_and(|base| number::integer(base) != 10)
    {
        let what = "tonumber with a base is not supported on this node";
        return Err(ScriptError::stopped(given.line, what));
    }
    Ok(as_number(value).map_or(Datum::Nil, Datum::Number))
}

fn to_string<'r>(value: &Datum<'r>, line: u32) -> Result<Datum<'r>, ScriptError> {
    Ok(match value {
        Datum::Nil => Datum::owned(b"nil"),
        Datum::Boolean(value) => Datum::owned(if *value { b"true" } else { b"false" }),
        Datum::Number(value) => Datum::owned(&number::display(*value)),
        Datum::Text(text) => Datum::Text(text.clone()),
        Datum::Table(_) | Datum::Builtin(_) => {
            let what = "tostring of a table or function is not supported on this node";
            return Err(ScriptError::stopped(line, what));
        }
    })
}

fn extreme<'r>(
    given: &Arguments<'_, 'r>,
    better: impl Fn(f64, f64) -> bool,
) -> Result<Datum<'r>, ScriptError> {
    let mut best = given.number(0)?;
    for at in 1..given.values.len() {
        let value = given.number(at)?;
        if better(value, best) {
            best = value;
        }
    }
    Ok(Datum::Number(best))
}

fn substring<'r>(given: &Arguments<'_, 'r>) -> Result<Datum<'r>, ScriptError> {
    let text = given.text(0)?;
    let length = i64::try_from(text.len()).unwrap_or(i64::MAX);
    // A negative position counts from the end.
    let position = |value: i64| {
        if value < 0 {
            value.saturating_add(length + 1)
        } else {
            value
        }
    };
    let first = position(number::integer(given.number(1)?)).max(1);
    let last = match given.optional_number(2)? {
        Some(last) => position(number::integer(last)).min(length),
        None => length,
    };
    let range = usize::try_from(first - 1)
        .ok()
        .zip(usize::try_from(last).ok());
    let part = range
        .and_then(|(first, last)| text.get(first..last))
        .unwrap_or_default();
    Ok(Datum::owned(part))
}

const NO_ARGUMENTS: &[u8] = b"ERR Please specify at least one argument for this redis lib call";
const BAD_ARGUMENTS: &[u8] = b"ERR Lua redis lib command arguments must be strings or integers";
const UNKNOWN: &[u8] = b"ERR Unknown Redis command called from script";
const READ_ONLY: &[u8] = b"ERR Write commands are not allowed from read-only scripts.";

/// Lua 5.1 has room for 8000 values on its C stack, some of which are in use.
const UNPACK_MAX: i64 = 7_990;

/// Most replies are an integer, a status or a token.
const REPLY_BYTES: usize = 64;
