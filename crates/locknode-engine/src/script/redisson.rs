//! The scripts that Redisson's locks send for every acquire, renewal and unlock.
//!
//! A lock is a hash: each holder, an instance and a thread of it, has a field with the number of its
//! holds. An unlock leaves its outcome in a latch, a key of its own, so that the same unlock sent
//! again has the same reply. Redisson's other scripts run in Lua.

use crate::script::behaviours::Known;
use crate::script::machine::{integer_of, number};
use crate::script::native::{Behaviour, Native, Outcome, Word, integer};
use crate::script::{ScriptError, Value};

use Word::{Arg, Is, Key};

/// The SHA1s of the scripts; see `known.rs`.
#[rustfmt::skip]
pub(super) static KNOWN: &[([u8; 40], Known)] = &[
    (*b"149c5a8bf18676fd99e9e6e24923bd64d9b62f94", known(acquire)), // RedissonLock 3.19 to 4.7
    (*b"3ffe249c16dee540ac8ab32e39bd408626b9aff7", known(|it| it.unlock(&UNLOCK_3_11))), // RedissonLock 3.11 to 3.21
    (*b"46b5551ba403d6152a7a6eca122e08728d6c8c66", known(acquire_fenced)), // RedissonFencedLock
    (*b"49babb5a1e6a0c5f188c2ae62b93b51cdfd63e45", known(acquire_and_read_fence)), // RedissonFencedLock
    (*b"605e338249a7a1d40df83b04f7658354f883b41b", known(force_unlock)), // RedissonLock 3.22 to 4.7
    (*b"6866459238a13a701d42f4971f12d9f3a50e2442", known(|it| it.unlock(&UNLOCK))), // RedissonLock 3.24 to 4.7
    (*b"6a3d31570dc6f4b0bd32bcdc8e75667747c6f635", known(renew_all)), // LockTask 3.41 to 4.7
    (*b"73ac2729af29ea9a975f95e8097f7ee9a74cce3d", known(|it| it.unlock(&UNLOCK_SPIN))), // RedissonSpinLock
    (*b"778cea8aada230ae060b432fc333adaec85f2f4c", known(|it| it.unlock(&UNLOCK_3_22))), // RedissonLock 3.22, 3.23
    (*b"8e19a1ddbdee9138df9f32a480c57addab4353d1", known(renew)), // RedissonLock to 3.40
    (*b"dad0f8d619e548e04f21fb48d50be5034df3adae", known(acquire)), // RedissonLock 3.13 to 3.17, RedissonSpinLock
];

const fn known(steps: fn(&mut Native<'_>) -> Outcome) -> Known {
    Known {
        #[cfg(test)]
        name: "REDISSON",
        behaviour: Behaviour::Steps(steps),
    }
}

/// Acquires a free lock, or once more: nil, otherwise the TTL of the holder.
fn acquire(native: &mut Native<'_>) -> Outcome {
    if !native.may_hold()? {
        return native.command(PTTL);
    }
    native.hold()?;
    Ok(Value::Nil)
}

/// The same, and each acquire raises the fence in `KEYS[2]`.
fn acquire_fenced(native: &mut Native<'_>) -> Outcome {
    if !native.may_hold()? {
        return native.command(PTTL);
    }
    native.command(RAISE)?;
    native.hold()?;
    Ok(Value::Nil)
}

/// The same: -1 and the fence, otherwise the TTL of the holder and -1.
fn acquire_and_read_fence(native: &mut Native<'_>) -> Outcome {
    let none = Value::Integer(-1);
    if !native.may_hold()? {
        return Ok(Value::Array(vec![native.command(PTTL)?, none]));
    }
    let fence = native.command(RAISE)?;
    native.hold()?;
    Ok(Value::Array(vec![none, fence]))
}

/// Deletes the lock of any holder: 1 if there was one, otherwise 0.
fn force_unlock(native: &mut Native<'_>) -> Outcome {
    let is_deleted = native.is_one(&[Is("del"), Key(1)])?;
    if is_deleted {
        native.command(&[Arg(2), Key(2), Arg(1)])?;
    }
    Ok(Value::Integer(i64::from(is_deleted)))
}

/// Sets the holder's TTL: 1, otherwise 0.
fn renew(native: &mut Native<'_>) -> Outcome {
    let is_held = native.is_one(HOLDS)?;
    if is_held {
        native.command(EXPIRE)?;
    }
    Ok(Value::Integer(i64::from(is_held)))
}

/// The same for several locks, each with its holder in `ARGV`.
fn renew_all(native: &mut Native<'_>) -> Outcome {
    let mut renewed = Vec::with_capacity(native.keys.len());
    for number in 1..=native.keys.len() {
        let key = Key(number);
        let is_held = native.is_one(&[Is("hexists"), key, Arg(number + 1)])?;
        if is_held {
            native.command(&[Is("pexpire"), key, Arg(1)])?;
        }
        renewed.push(Value::Integer(i64::from(is_held)));
    }
    Ok(Value::Array(renewed))
}

/// Where the words of an unlock are.
#[derive(Clone, Copy)]
struct Unlock {
    ttl: Word,
    holder: Word,
    /// The command that tells those who wait, if they wait for that.
    tell: &'static [Word],
    /// The latch and its TTL.
    latch: Option<(Word, Word)>,
}

const UNLOCK_3_11: Unlock = Unlock {
    ttl: Arg(2),
    holder: Arg(3),
    tell: &[Is("publish"), Key(2), Arg(1)],
    latch: None,
};

/// The client says whether it is PUBLISH or SPUBLISH.
const UNLOCK_3_22: Unlock = Unlock {
    tell: &[Arg(4), Key(2), Arg(1)],
    ..UNLOCK_3_11
};

const UNLOCK: Unlock = Unlock {
    latch: Some((Key(3), Arg(5))),
    ..UNLOCK_3_22
};

const UNLOCK_SPIN: Unlock = Unlock {
    ttl: Arg(1),
    holder: Arg(2),
    tell: &[],
    latch: Some((Key(2), Arg(3))),
};

impl Native<'_> {
    /// Returns whether the lock is free or the caller's.
    fn may_hold(&mut self) -> Result<bool, ScriptError> {
        Ok(!self.is_one(&[Is("exists"), Key(1)])? || self.is_one(HOLDS)?)
    }

    fn hold(&mut self) -> Result<(), ScriptError> {
        self.command(&[Is("hincrby"), Key(1), Arg(2), Is("1")])?;
        self.command(EXPIRE)?;
        Ok(())
    }

    /// Gives back one hold: 0 if others are left, 1 if it was the last one, nil without any.
    fn unlock(&mut self, words: &Unlock) -> Outcome {
        if let Some((latch, _)) = words.latch
            && let Value::Bulk(outcome) = self.command(&[Is("get"), latch])?
        {
            // As Lua reads a number.
            let text = outcome.trim_ascii();
            let number = number(text).filter(|(_, len)| *len == text.len());
            return Ok(number.map_or(Value::Nil, |(number, _)| integer_of(number)));
        }
        if !self.is_one(&[Is("hexists"), Key(1), words.holder])? {
            return Ok(Value::Nil);
        }
        let left = self.command(&[Is("hincrby"), Key(1), words.holder, Is("-1")])?;
        let is_last = integer(&left) <= 0;
        if is_last {
            self.command(&[Is("del"), Key(1)])?;
            if !words.tell.is_empty() {
                self.command(words.tell)?;
            }
        } else {
            self.command(&[Is("pexpire"), Key(1), words.ttl])?;
        }
        if let Some((latch, ttl)) = words.latch {
            let outcome = Is(if is_last { "1" } else { "0" });
            self.command(&[Is("set"), latch, outcome, Is("px"), ttl])?;
        }
        Ok(Value::Integer(i64::from(is_last)))
    }

    fn is_one(&mut self, words: &[Word]) -> Result<bool, ScriptError> {
        Ok(integer(&self.command(words)?) == 1)
    }
}

const HOLDS: &[Word] = &[Is("hexists"), Key(1), Arg(2)];
const EXPIRE: &[Word] = &[Is("pexpire"), Key(1), Arg(1)];
const PTTL: &[Word] = &[Is("pttl"), Key(1)];
const RAISE: &[Word] = &[Is("incr"), Key(2)];
