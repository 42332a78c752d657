//! The scripts of known lock libraries, rewritten: one for each behaviour.
//!
//! Libraries differ in the text that they send, and much less in what it does. `known.rs` maps the
//! SHA1 of each library's text to one of these programs, which returns the same replies and leaves
//! the same keys. Keys, tokens and TTLs are where the libraries put them; the comments state the
//! replies.

/// A script that the node knows by its SHA1 without having seen it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Known {
    name: &'static str,
    source: &'static str,
}

impl Known {
    const fn new(name: &'static str, source: &'static str) -> Self {
        Self { name, source }
    }

    /// The name of the behaviour.
    #[cfg(test)]
    #[must_use]
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// A script equivalent to the known one, for [`Program::compile`](super::Program::compile).
    #[must_use]
    pub(crate) fn source(&self) -> &'static [u8] {
        self.source.as_bytes()
    }
}

macro_rules! behaviours {
    ($($(#[$doc:meta])* $id:ident, $name:literal, $source:literal;)*) => {
        $($(#[$doc])* pub(super) static $id: Known = Known::new($name, $source);)*

        /// Every behaviour.
        #[cfg(test)]
        pub(super) static ALL: &[&Known] = &[$(&$id),*];
    };
}

behaviours! {
    /// Deletes the holder's key: 1, otherwise 0.
    RELEASE, "release", "
        local holder = redis.call('get', KEYS[1])
        if holder ~= ARGV[1] then return 0 end
        return redis.call('del', KEYS[1])";

    /// As `release`, but -1 when there is no key.
    RELEASE_ABSENT_MINUS_ONE, "release_absent_minus_one", "
        local holder = redis.call('get', KEYS[1])
        if holder == ARGV[1] then return redis.call('del', KEYS[1]) end
        return holder == false and -1 or 0";

    /// 1, or -1 when there is no key, or -2 for another holder.
    RELEASE_GRADED, "release_graded", "
        local holder = redis.call('get', KEYS[1])
        if holder == false then return -1 end
        if holder == ARGV[1] then return redis.call('del', KEYS[1]) end
        return -2";

    /// 1, otherwise nil.
    RELEASE_OR_NIL, "release_or_nil", "
        local holder = redis.call('get', KEYS[1])
        if holder ~= ARGV[1] then return false end
        redis.call('unlink', KEYS[1])
        return true";

    /// 1, or status OK when there is no key, or an error for another holder.
    RELEASE_OR_ERROR, "release_or_error", "
        local holder = redis.call('get', KEYS[1])
        if holder == false then return redis.status_reply('OK') end
        if holder ~= ARGV[1] then return redis.error_reply('ERROR') end
        return redis.call('del', KEYS[1])";

    /// As `release`, and 0 for a key that is not a string.
    RELEASE_STRING, "release_string", "
        local kind = redis.call('type', KEYS[1])
        local mine = kind.ok == 'string' and redis.call('get', KEYS[1]) == ARGV[1]
        if mine then return redis.call('del', KEYS[1]) end
        return 0";

    /// Deletes the key for any holder: 1, otherwise 0.
    DELETE, "delete", "
        local deleted = redis.call('del', KEYS[1])
        if deleted ~= 1 then return 0 end
        return deleted";

    /// Sets the holder's TTL in milliseconds: 1, otherwise 0.
    EXTEND, "extend", "
        local holder = redis.call('get', KEYS[1])
        if holder ~= ARGV[1] then return 0 end
        return redis.call('pexpire', KEYS[1], ARGV[2])";

    /// 1, otherwise nil.
    EXTEND_OR_NIL, "extend_or_nil", "
        local holder = redis.call('get', KEYS[1])
        if holder ~= ARGV[1] then return false end
        redis.call('pexpire', KEYS[1], ARGV[2])
        return true";

    /// As `extend`, and 0 for a key that is not a string.
    EXTEND_STRING, "extend_string", "
        local kind = redis.call('type', KEYS[1])
        local mine = kind.ok == 'string' and redis.call('get', KEYS[1]) == ARGV[1]
        if mine then return redis.call('pexpire', KEYS[1], ARGV[2]) end
        return 0";

    /// Sets the holder's TTL in seconds: 0, otherwise 1.
    EXTEND_SECONDS_INVERTED, "extend_seconds_inverted", "
        local holder = redis.call('get', KEYS[1])
        if holder ~= ARGV[1] then return 1 end
        redis.call('expire', KEYS[1], ARGV[2])
        return 0";

    /// Sets the holder's TTL in seconds, or removes it for 0 and less: 1, otherwise 0.
    EXTEND_SECONDS_OR_PERSIST, "extend_seconds_or_persist", "
        local holder = redis.call('get', KEYS[1])
        if holder ~= ARGV[1] then return 0 end
        if tonumber(ARGV[2]) > 0 then return redis.call('expire', KEYS[1], ARGV[2]) end
        redis.call('persist', KEYS[1])
        return 1";

    /// Replaces a TTL with another in seconds: 0, or 1 for another holder, or 2 when there is no
    /// TTL.
    EXTEND_SECONDS_WITH_TTL, "extend_seconds_with_ttl", "
        local holder = redis.call('get', KEYS[1])
        if holder ~= ARGV[1] then return 1 end
        if redis.call('ttl', KEYS[1]) < 0 then return 2 end
        redis.call('expire', KEYS[1], ARGV[2])
        return 0";

    /// Moves the holder's deadline later; an error for any other caller.
    EXTEND_LATER_OR_ERROR, "extend_later_or_error", "
        local holder = redis.call('get', KEYS[1])
        if holder ~= ARGV[1] then return redis.error_reply('NOT LOCKED') end
        return redis.call('pexpire', KEYS[1], ARGV[2], 'GT')";

    /// Sets the holder's deadline as a point in time: 1, otherwise 0.
    EXTEND_AT, "extend_at", "
        local holder = redis.call('get', KEYS[1])
        if holder ~= ARGV[1] then return 0 end
        return redis.call('pexpireat', KEYS[1], ARGV[2])";

    /// Like `extend_at`, and reads the key so that the caller's cache is notified of changes.
    EXTEND_AT_AND_READ, "extend_at_and_read", "
        local holder = redis.call('get', KEYS[1])
        if holder ~= ARGV[1] then return 0 end
        local extended = redis.call('pexpireat', KEYS[1], ARGV[2])
        redis.call('get', KEYS[1])
        return extended";

    /// Sets the holder's key again: 1, otherwise 0.
    EXTEND_BY_SET, "extend_by_set", "
        local holder = redis.call('get', KEYS[1])
        if holder ~= ARGV[1] then return 0 end
        redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])
        return 1";

    /// Sets the holder's key again: status OK, otherwise the text ERR.
    EXTEND_BY_SET_OR_TEXT, "extend_by_set_or_text", "
        local holder = redis.call('get', KEYS[1])
        if holder ~= ARGV[1] then return 'ERR' end
        return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2], 'XX')";

    /// The same with the TTL and the token passed as keys: status OK, otherwise 0.
    EXTEND_BY_SET_FROM_KEYS, "extend_by_set_from_keys", "
        local holder = redis.call('get', KEYS[1])
        if holder ~= KEYS[3] then return 0 end
        return redis.call('set', KEYS[1], KEYS[3], 'XX', 'PX', KEYS[2])";

    /// Extends, or acquires a free key: 1, otherwise 0.
    EXTEND_OR_ACQUIRE, "extend_or_acquire", "
        local holder = redis.call('get', KEYS[1])
        if holder == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end
        local set = redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
        return set and 1 or 0";

    /// Extends, or acquires a free key: 1, otherwise -1.
    EXTEND_OR_CREATE, "extend_or_create", "
        local holder = redis.call('get', KEYS[1])
        if holder == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end
        if holder then return -1 end
        redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])
        return 1";

    /// Replaces a TTL: 1, or 0 when not held or without a TTL.
    EXTEND_WITH_TTL, "extend_with_ttl", "
        if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
        if redis.call('pttl', KEYS[1]) < 0 then return 0 end
        redis.call('pexpire', KEYS[1], ARGV[2])
        return 1";

    /// Adds to a TTL: 1, or 0 when not held or without a TTL.
    EXTEND_ADDING, "extend_adding", "
        if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
        local left = redis.call('pttl', KEYS[1])
        if left < 0 then return 0 end
        redis.call('pexpire', KEYS[1], left + ARGV[2])
        return 1";

    /// Adds to a TTL if the third argument is 0, otherwise replaces it.
    EXTEND_ADDING_OR_REPLACING, "extend_adding_or_replacing", "
        if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
        local left = redis.call('pttl', KEYS[1])
        if left < 0 then return 0 end
        local ttl = ARGV[3] == '0' and ARGV[2] + left or ARGV[2]
        redis.call('pexpire', KEYS[1], ttl)
        return 1";

    /// Extends while enough time is left; returns the outcome and the TTL that was left.
    EXTEND_ENOUGH_LEFT, "extend_enough_left", "
        local left = redis.call('pttl', KEYS[1])
        if left == -2 then return {-1, -2} end
        if left < tonumber(ARGV[2]) then return {0, left} end
        if redis.call('get', KEYS[1]) ~= ARGV[1] then return {-1, left} end
        redis.call('pexpire', KEYS[1], tonumber(ARGV[3]))
        return {1, left}";

    /// SET NX PX: status OK, otherwise nil.
    ACQUIRE, "acquire", "
        local set = redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX')
        return set";

    /// Like `acquire`, and reads the key so that the caller's cache is notified of changes.
    ACQUIRE_AND_READ, "acquire_and_read", "
        local set = redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX')
        redis.call('get', KEYS[1])
        return set";

    /// The same with the deadline as a point in time.
    ACQUIRE_AT_AND_READ, "acquire_at_and_read", "
        local set = redis.call('set', KEYS[1], ARGV[1], 'PXAT', ARGV[2], 'NX')
        redis.call('get', KEYS[1])
        return set";

    /// Sets the key for any holder, and reads it.
    FORCE_AND_READ, "force_and_read", "
        local set = redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2])
        redis.call('get', KEYS[1])
        return set";

    /// The same with the deadline as a point in time.
    FORCE_AT_AND_READ, "force_at_and_read", "
        local set = redis.call('set', KEYS[1], ARGV[1], 'pxat', ARGV[2])
        redis.call('get', KEYS[1])
        return set";

    /// Acquires a free key or sets the holder's again: status OK, otherwise nil.
    ACQUIRE_OR_EXTEND, "acquire_or_extend", "
        local free = redis.call('exists', KEYS[1]) == 0
        if free or redis.call('get', KEYS[1]) == ARGV[1] then
            return redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2])
        end
        return nil";

    /// The same, but a free key only if the third argument is `yes`.
    ACQUIRE_IF_ALLOWED_OR_EXTEND, "acquire_if_allowed_or_extend", "
        local free = redis.call('exists', KEYS[1]) == 0
        if free and ARGV[3] == 'yes' or redis.call('get', KEYS[1]) == ARGV[1] then
            return redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2])
        end
        return nil";

    /// The same as `acquire_or_extend`, but an error for any other caller.
    ACQUIRE_OR_ERROR, "acquire_or_error", "
        local holder = redis.call('get', KEYS[1])
        if holder and holder ~= ARGV[1] then return redis.error_reply('ERROR') end
        return redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2])";

    /// Acquires a free key or extends the holder's: 1, otherwise nil.
    ACQUIRE_OR_NIL, "acquire_or_nil", "
        local holder = redis.call('get', KEYS[1])
        if holder == ARGV[1] then
            redis.call('pexpire', KEYS[1], ARGV[2])
        elseif holder then
            return false
        else
            redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2])
        end
        return true";

    /// Acquires a free key with the TTL if there is one: 1, otherwise 0.
    ACQUIRE_OPTIONAL_TTL, "acquire_optional_ttl", "
        if redis.call('setnx', KEYS[1], ARGV[1]) == 0 then return 0 end
        if ARGV[2] == '' then return 1 end
        redis.call('pexpire', KEYS[1], ARGV[2])
        return 1";

    /// 1 for the holder, without any change, and for a successful acquire; otherwise 0.
    ACQUIRE_REENTRANT, "acquire_reentrant", "
        if redis.call('get', KEYS[1]) == ARGV[1] then return 1 end
        local set = redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX')
        return set and 1 or 0";

    /// Acquires a free key: 1, otherwise 0.
    ACQUIRE_FREE, "acquire_free", "
        if redis.call('exists', KEYS[1]) ~= 0 then return 0 end
        redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2])
        return 1";

    /// Acquires a free key with a TTL in seconds: status OK, otherwise nil.
    ACQUIRE_FREE_SECONDS, "acquire_free_seconds", "
        if redis.call('exists', KEYS[1]) > 0 then return false end
        return redis.call('setex', KEYS[1], ARGV[2], ARGV[1])";

    /// Acquires all keys or none: their number, otherwise 0.
    ACQUIRE_ALL, "acquire_all", "
        for _, name in ipairs(KEYS) do
            if redis.call('exists', name) ~= 0 then return 0 end
        end
        for _, name in ipairs(KEYS) do
            redis.call('set', name, ARGV[1], 'px', ARGV[2])
        end
        return #KEYS";

    /// Sets all keys again or none: their number, otherwise 0.
    EXTEND_ALL, "extend_all", "
        for _, name in ipairs(KEYS) do
            local holder = redis.call('get', name)
            if holder ~= ARGV[1] then return 0 end
        end
        for _, name in ipairs(KEYS) do
            redis.call('set', name, ARGV[1], 'px', ARGV[2])
        end
        return #KEYS";

    /// Deletes the keys that are held: their number.
    RELEASE_ALL, "release_all", "
        local released = 0
        for _, name in ipairs(KEYS) do
            local holder = redis.call('get', name)
            if holder == ARGV[1] then
                released = released + 1
                redis.pcall('del', name)
            end
        end
        return released";

    /// Acquires all keys, each with its own token, or none; returns which key was held.
    ACQUIRE_EACH, "acquire_each", "
        for at, name in ipairs(KEYS) do
            if redis.call('exists', name) ~= 0 then return {0, at, name} end
        end
        local ttl = tonumber(ARGV[#ARGV])
        for at, name in ipairs(KEYS) do
            redis.call('set', name, ARGV[at], 'px', ttl)
        end
        return {1, #KEYS}";

    /// Acquires all keys, or takes them over if the first bytes of the token match: status OK,
    /// otherwise nil.
    OBTAIN_ALL, "obtain_all", "
        local pairs_to_set = {}
        for at, name in ipairs(KEYS) do
            pairs_to_set[2 * at - 1] = name
            pairs_to_set[2 * at] = ARGV[1]
        end
        if redis.call('msetnx', unpack(pairs_to_set)) == 0 then
            local offset = tonumber(ARGV[2])
            for _, name in ipairs(KEYS) do
                local start = redis.call('getrange', name, 0, offset - 1)
                if start ~= string.sub(ARGV[1], 1, offset) then return false end
            end
            redis.call('mset', unpack(pairs_to_set))
        end
        for _, name in ipairs(KEYS) do
            redis.call('pexpire', name, ARGV[3])
        end
        return redis.status_reply('OK')";

    /// The same for one key with SET.
    OBTAIN_ONE, "obtain_one", "
        local set = redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[3], 'NX')
        if set then return set end
        local offset = tonumber(ARGV[2])
        local start = redis.call('getrange', KEYS[1], 0, offset - 1)
        if start ~= string.sub(ARGV[1], 1, offset) then return nil end
        return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[3])";

    /// Deletes all keys if all are held: status OK, otherwise nil.
    RELEASE_ALL_OR_NONE, "release_all_or_none", "
        local holders = redis.call('mget', unpack(KEYS))
        for at = 1, #KEYS do
            if holders[at] ~= ARGV[1] then return false end
        end
        redis.call('del', unpack(KEYS))
        return redis.status_reply('OK')";

    /// Extends all keys if all are held: status OK, otherwise nil.
    EXTEND_ALL_OR_NONE, "extend_all_or_none", "
        local holders = redis.call('mget', unpack(KEYS))
        for at = 1, #KEYS do
            if holders[at] ~= ARGV[1] then return false end
        end
        for at = 1, #KEYS do
            redis.call('pexpire', KEYS[at], ARGV[2])
        end
        return redis.status_reply('OK')";

    /// The shortest TTL if all keys are held, otherwise nil.
    SHORTEST_TTL, "shortest_ttl", "
        local holders = redis.call('mget', unpack(KEYS))
        for at = 1, #KEYS do
            if holders[at] ~= ARGV[1] then return false end
        end
        local shortest = 0
        for at = 1, #KEYS do
            local left = redis.call('pttl', KEYS[at])
            if left > 0 and (shortest == 0 or left < shortest) then shortest = left end
        end
        return shortest";

    /// The holder's TTL, otherwise -3.
    TTL_OR_MINUS_THREE, "ttl_or_minus_three", "
        local holder = redis.call('get', KEYS[1])
        if holder ~= ARGV[1] then return -3 end
        return redis.call('pttl', KEYS[1])";

    /// The holder's TTL, or 0 without one or for any other caller.
    TTL_OR_ZERO, "ttl_or_zero", "
        local holder = redis.call('get', KEYS[1])
        if holder ~= ARGV[1] then return 0 end
        local left = redis.call('pttl', KEYS[1])
        if left > 0 then return left end
        return 0";

    /// The holder's TTL in seconds, otherwise an error.
    TTL_OR_ERROR, "ttl_or_error", "
        local holder = redis.call('get', KEYS[1])
        if holder and holder == ARGV[1] then return redis.call('ttl', KEYS[1]) end
        return redis.error_reply('ERROR')";

    /// The token and the TTL, whatever they are.
    TOKEN_AND_TTL, "token_and_ttl", "
        local holder = redis.call('get', KEYS[1])
        local left = redis.call('pttl', KEYS[1])
        return {holder, left}";

    /// The token and the TTL, or nil when there is no key.
    TOKEN_AND_TTL_OR_NIL, "token_and_ttl_or_nil", "
        local holder = redis.call('get', KEYS[1])
        if holder == false then return false end
        return {holder, redis.call('pttl', KEYS[1])}";

    /// Acquires the first key that is free: its name and number, otherwise nil.
    FIRST_FREE, "first_free", "
        local holders = redis.call('mget', unpack(KEYS))
        for at, holder in ipairs(holders) do
            if holder == false then
                redis.call('set', KEYS[at], ARGV[3], 'ex', ARGV[2])
                return ARGV[1] .. at
            end
        end";

    /// Tests whether TIME and a write can be in one script: 1.
    TIME_PROBE, "time_probe", "
        redis.call('time')
        redis.call('set', KEYS[1], '1', 'px', 1)
        return 1";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{Answer, Program, Shape, Unit};

    #[test]
    fn every_behaviour_compiles() {
        for known in ALL {
            assert!(Program::compile(known.source()).is_ok(), "{}", known.name());
        }
    }

    #[test]
    fn the_frequent_behaviours_have_a_hot_shape() {
        let (one, zero, nil) = (Answer::Integer(1), Answer::Integer(0), Answer::Nil);
        let less = Answer::Integer(-1);
        let release = |mismatch, absent| Shape::Release {
            held: one,
            mismatch,
            absent,
        };
        let extend = |held, mismatch, unit| Shape::Extend {
            unit,
            held,
            mismatch,
            absent: mismatch,
        };
        let rows = [
            (&RELEASE, Some(release(zero, zero))),
            (&RELEASE_ABSENT_MINUS_ONE, Some(release(zero, less))),
            (&RELEASE_GRADED, Some(release(Answer::Integer(-2), less))),
            (&RELEASE_OR_NIL, Some(release(nil, nil))),
            (&EXTEND, Some(extend(one, zero, Unit::Millis))),
            (&EXTEND_OR_NIL, Some(extend(one, nil, Unit::Millis))),
            (
                &EXTEND_SECONDS_INVERTED,
                Some(extend(zero, one, Unit::Seconds)),
            ),
            // Creating a key may be refused for lack of memory, and only the evaluator knows that
            // error text.
            (&ACQUIRE, None),
        ];
        for (known, want) in rows {
            let program = Program::compile(known.source()).unwrap();
            assert_eq!(program.shape(), want, "{}", known.name());
        }
    }
}
