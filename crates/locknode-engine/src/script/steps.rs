//! The behaviours that are more than one step for each state of the key; see `behaviours.rs`.

use crate::script::native::{EXPIRE, NOT_A_WORD, Native, Outcome, PEXPIRE, Word, integer, text};
use crate::script::{ScriptError, Value};

use Word::{Arg, Is, Key};

const ONE: Value = Value::Integer(1);
const ZERO: Value = Value::Integer(0);

const PTTL: &[Word] = &[Is("pttl"), Key(1)];
const SET_PX: &[Word] = &[Is("set"), Key(1), Arg(1), Is("px"), Arg(2)];

fn list(items: impl Into<Vec<Value>>) -> Outcome {
    Ok(Value::Array(items.into()))
}

fn number(count: usize) -> Value {
    Value::Integer(i64::try_from(count).unwrap_or(i64::MAX))
}

fn ok() -> Outcome {
    Ok(Value::Status(b"OK".to_vec()))
}

/// An argument of Lua's arithmetic or comparison: a number, or Lua's error.
fn as_number(text: Option<&[u8]>, error: &str) -> Result<f64, ScriptError> {
    let number = text
        .and_then(|text| std::str::from_utf8(text).ok())
        .and_then(|text| text.trim().parse::<f64>().ok());
    number.ok_or_else(|| ScriptError::lua(1, error.as_bytes()))
}

fn argument(number: f64) -> String {
    // Rust writes a whole number without a fraction, as Redis passes it to a command.
    number.to_string()
}

impl Native<'_> {
    /// Returns whether `ARGV[1]` holds `KEYS[number]`.
    fn holds(&mut self, number: usize) -> Result<bool, ScriptError> {
        let token = self.arg(1);
        Ok(self
            .get(number)?
            .is_some_and(|holder| token == Some(&holder)))
    }

    /// Returns whether `ARGV[1]` holds every key.
    fn holds_all(&mut self) -> Result<bool, ScriptError> {
        let token = self.arg(1);
        let Value::Array(holders) = self.call_on_all(b"mget")? else {
            return Ok(false);
        };
        let is_own = |holder| text(holder).is_some_and(|holder| token == Some(&holder));
        Ok(holders.into_iter().all(is_own))
    }

    fn call_on_all(&mut self, name: &[u8]) -> Outcome {
        let words: Vec<&[u8]> = [name]
            .into_iter()
            .chain(self.keys.iter().copied())
            .collect();
        self.call(&words)
    }

    fn is_free(&mut self, key: &[u8]) -> Result<bool, ScriptError> {
        Ok(integer(&self.call(&[b"exists", key])?) == 0)
    }

    fn set_all(&mut self) -> Outcome {
        for key in self.keys {
            let (token, ttl) = (self.arg(1), self.arg(2));
            self.call_some(&[Some(b"set"), Some(key), token, Some(b"px"), ttl])?;
        }
        Ok(number(self.keys.len()))
    }

    /// Returns the TTL of the key, if it has one and `ARGV[1]` holds it.
    fn held_for(&mut self) -> Result<Option<i64>, ScriptError> {
        if !self.holds(1)? {
            return Ok(None);
        }
        let left = integer(&self.command(PTTL)?);
        Ok(Some(left).filter(|&left| left >= 0))
    }

    fn set_ttl(&mut self, ttl: f64) -> Outcome {
        let key = self.keys.first().copied();
        self.call_some(&[Some(b"pexpire"), key, Some(argument(ttl).as_bytes())])?;
        Ok(ONE)
    }

    /// Sets the TTL of every key.
    fn set_all_ttls(&mut self, ttl: Option<&[u8]>) -> Outcome {
        for key in self.keys {
            self.call_some(&[Some(b"pexpire"), Some(key), ttl])?;
        }
        ok()
    }
}

pub(super) fn extend_or_persist(native: &mut Native<'_>) -> Outcome {
    if !native.holds(1)? {
        return Ok(ZERO);
    }
    let ttl = native.arg(2);
    if as_number(ttl, "attempt to compare number with nil")? > 0.0 {
        return native.command(EXPIRE);
    }
    native.command(&[Is("persist"), Key(1)])?;
    Ok(ONE)
}

pub(super) fn extend_seconds_with_ttl(native: &mut Native<'_>) -> Outcome {
    if !native.holds(1)? {
        return Ok(ONE);
    }
    if integer(&native.command(&[Is("ttl"), Key(1)])?) < 0 {
        return Ok(Value::Integer(2));
    }
    native.command(EXPIRE)?;
    Ok(ZERO)
}

pub(super) fn extend_at_and_read(native: &mut Native<'_>) -> Outcome {
    if !native.holds(1)? {
        return Ok(ZERO);
    }
    let extended = native.command(&[Is("pexpireat"), Key(1), Arg(2)])?;
    native.get(1)?;
    Ok(extended)
}

pub(super) fn extend_with_ttl(native: &mut Native<'_>) -> Outcome {
    if native.held_for()?.is_none() {
        return Ok(ZERO);
    }
    native.command(PEXPIRE)?;
    Ok(ONE)
}

pub(super) fn extend_adding(native: &mut Native<'_>) -> Outcome {
    let Some(left) = native.held_for()? else {
        return Ok(ZERO);
    };
    let ttl = added(native, left)?;
    native.set_ttl(ttl)
}

pub(super) fn extend_adding_or_replacing(native: &mut Native<'_>) -> Outcome {
    if native.arg(3) == Some(b"0") {
        return extend_adding(native);
    }
    extend_with_ttl(native)
}

/// `left + ARGV[2]`.
fn added(native: &Native<'_>, left: i64) -> Result<f64, ScriptError> {
    let ttl = native.arg(2);
    let kind = if ttl.is_some() { "string" } else { "nil" };
    let error = format!("attempt to perform arithmetic on field '?' (a {kind} value)");
    #[expect(clippy::cast_precision_loss, reason = "Lua's numbers are doubles")]
    let left = left as f64;
    Ok(left + as_number(ttl, &error)?)
}

pub(super) fn extend_enough_left(native: &mut Native<'_>) -> Outcome {
    let pttl = native.command(PTTL)?;
    let left = integer(&pttl);
    if left == -2 {
        return list([Value::Integer(-1), pttl]);
    }
    #[expect(clippy::cast_precision_loss, reason = "Lua's numbers are doubles")]
    let is_short = (left as f64) < as_number(native.arg(2), "attempt to compare number with nil")?;
    if is_short {
        return list([ZERO, pttl]);
    }
    if !native.holds(1)? {
        return list([Value::Integer(-1), pttl]);
    }
    let ttl = as_number(native.arg(3), "");
    let ttl = ttl.map_err(|_| ScriptError::new(NOT_A_WORD.into(), 1))?;
    native.set_ttl(ttl)?;
    list([ONE, pttl])
}

pub(super) fn acquire_if_allowed_or_extend(native: &mut Native<'_>) -> Outcome {
    let is_allowed = match native.get(1)? {
        None => native.arg(3) == Some(b"yes"),
        Some(holder) => native.arg(1) == Some(&holder),
    };
    if is_allowed {
        native.command(SET_PX)
    } else {
        Ok(Value::Nil)
    }
}

pub(super) fn acquire_optional_ttl(native: &mut Native<'_>) -> Outcome {
    if integer(&native.command(&[Is("setnx"), Key(1), Arg(1)])?) == 0 {
        return Ok(ZERO);
    }
    if native.arg(2) != Some(b"") {
        native.command(PEXPIRE)?;
    }
    Ok(ONE)
}

pub(super) fn acquire_all(native: &mut Native<'_>) -> Outcome {
    for key in native.keys {
        if !native.is_free(key)? {
            return Ok(ZERO);
        }
    }
    native.set_all()
}

pub(super) fn extend_all(native: &mut Native<'_>) -> Outcome {
    for at in 1..=native.keys.len() {
        if !native.holds(at)? {
            return Ok(ZERO);
        }
    }
    native.set_all()
}

pub(super) fn release_all(native: &mut Native<'_>) -> Outcome {
    let mut released = 0;
    for (at, key) in (1..).zip(native.keys) {
        if native.holds(at)? {
            released += 1;
            native.call_protected(&[b"del", key]);
        }
    }
    Ok(Value::Integer(released))
}

pub(super) fn acquire_each(native: &mut Native<'_>) -> Outcome {
    for (at, key) in (1..).zip(native.keys) {
        if !native.is_free(key)? {
            return list([ZERO, number(at), Value::Bulk(key.to_vec())]);
        }
    }
    let ttl = as_number(native.args.last().copied(), "")
        .map(argument)
        .ok();
    for (at, key) in (1..).zip(native.keys) {
        let (token, ttl) = (native.arg(at), ttl.as_deref().map(str::as_bytes));
        native.call_some(&[Some(b"set"), Some(key), token, Some(b"px"), ttl])?;
    }
    list([ONE, number(native.keys.len())])
}

/// Returns whether the first `ARGV[2]` bytes of a key's token are those of `ARGV[1]`.
fn has_prefix(native: &mut Native<'_>, key: Option<&[u8]>) -> Result<bool, ScriptError> {
    let error = "attempt to perform arithmetic on local 'offset' (a nil value)";
    let offset = as_number(native.arg(2), error)?;
    let last = argument(offset - 1.0);
    let words = [
        Some(b"getrange".as_slice()),
        key,
        Some(b"0"),
        Some(last.as_bytes()),
    ];
    let start = text(native.call_some(&words)?).unwrap_or_default();
    let token = native.arg(1).unwrap_or_default();
    #[expect(clippy::cast_possible_truncation, reason = "Lua cuts the fraction off")]
    let length = match offset as i64 {
        0.. => usize::try_from(offset as i64)
            .unwrap_or(usize::MAX)
            .min(token.len()),
        // string.sub counts a negative end from the end of the token.
        negative => {
            let cut = usize::try_from(negative.unsigned_abs() - 1).unwrap_or(usize::MAX);
            token.len().saturating_sub(cut)
        }
    };
    Ok(token.get(..length) == Some(&start))
}

pub(super) fn obtain_all(native: &mut Native<'_>) -> Outcome {
    let token = native.arg(1);
    if !obtain(native, b"msetnx", token)? {
        for key in native.keys {
            if !has_prefix(native, Some(key))? {
                return Ok(Value::Nil);
            }
        }
        obtain(native, b"mset", token)?;
    }
    native.set_all_ttls(native.arg(3))
}

/// Sets every key; returns whether it did.
fn obtain(native: &mut Native<'_>, name: &[u8], token: Option<&[u8]>) -> Result<bool, ScriptError> {
    let mut words = vec![Some(name)];
    words.extend(native.keys.iter().flat_map(|key| [Some(*key), token]));
    Ok(native.call_some(&words)? != ZERO)
}

pub(super) fn obtain_one(native: &mut Native<'_>) -> Outcome {
    let set = [Is("set"), Key(1), Arg(1), Is("px"), Arg(3), Is("nx")];
    let reply = native.command(&set)?;
    if reply != Value::Nil {
        return Ok(reply);
    }
    let key = native.keys.first().copied();
    if !has_prefix(native, key)? {
        return Ok(Value::Nil);
    }
    native.command(&set[..5])
}

pub(super) fn release_all_or_none(native: &mut Native<'_>) -> Outcome {
    if !native.holds_all()? {
        return Ok(Value::Nil);
    }
    native.call_on_all(b"del")?;
    ok()
}

pub(super) fn extend_all_or_none(native: &mut Native<'_>) -> Outcome {
    if !native.holds_all()? {
        return Ok(Value::Nil);
    }
    native.set_all_ttls(native.arg(2))
}

pub(super) fn shortest_ttl(native: &mut Native<'_>) -> Outcome {
    if !native.holds_all()? {
        return Ok(Value::Nil);
    }
    let mut shortest = 0;
    for key in native.keys {
        let left = integer(&native.call(&[b"pttl", key])?);
        if left > 0 && (shortest == 0 || left < shortest) {
            shortest = left;
        }
    }
    Ok(Value::Integer(shortest))
}

pub(super) fn token_and_ttl(native: &mut Native<'_>) -> Outcome {
    let token = native.command(&[Is("get"), Key(1)])?;
    let left = native.command(PTTL)?;
    list([token, left])
}

pub(super) fn token_and_ttl_or_nil(native: &mut Native<'_>) -> Outcome {
    let token = native.command(&[Is("get"), Key(1)])?;
    if token == Value::Nil {
        return Ok(token);
    }
    let left = native.command(PTTL)?;
    list([token, left])
}

pub(super) fn first_free(native: &mut Native<'_>) -> Outcome {
    let Value::Array(holders) = native.call_on_all(b"mget")? else {
        return Ok(Value::Nil);
    };
    let Some(free) = holders.iter().position(|holder| *holder == Value::Nil) else {
        return Ok(Value::Nil);
    };
    native.command(&[Is("set"), Key(free + 1), Arg(3), Is("ex"), Arg(2)])?;
    let Some(prefix) = native.arg(1) else {
        let error = "attempt to concatenate field '?' (a nil value)";
        return Err(ScriptError::lua(1, error.as_bytes()));
    };
    let name = [prefix, (free + 1).to_string().as_bytes()].concat();
    Ok(Value::Bulk(name))
}

pub(super) fn time_probe(native: &mut Native<'_>) -> Outcome {
    native.command(&[Is("time")])?;
    native.command(&[Is("set"), Key(1), Is("1"), Is("px"), Is("1")])?;
    Ok(ONE)
}
