//! The scripts of known lock libraries, one behaviour for each way in which they differ.
//!
//! Libraries differ in the text that they send, and much less in what it does. `known.rs` maps the
//! SHA1 of each library's text to one of these, which gives the same replies and leaves the same
//! keys. Keys, tokens and TTLs are where the libraries put them; the comments state the replies.

use crate::script::answer::{Answer, Unit, Write};
use crate::script::native::{Behaviour, Cases, DELETE, PEXPIRE, Say, Step, Word, run};
use crate::script::shape::Shape;
use crate::script::steps;

use Behaviour::{Sequence, Steps};
use Word::{Arg, Is, Key};

/// A script that the node knows by its SHA1 without having seen it.
#[derive(Debug)]
pub(crate) struct Known {
    #[cfg(test)]
    pub(super) name: &'static str,
    pub(super) behaviour: Behaviour,
}

macro_rules! behaviours {
    ($($(#[$doc:meta])* $id:ident = $behaviour:expr;)*) => {
        $(
            $(#[$doc])*
            pub(super) static $id: Known = Known {
                #[cfg(test)]
                name: stringify!($id),
                behaviour: $behaviour,
            };
        )*

        /// Every behaviour.
        #[cfg(test)]
        pub(super) static ALL: &[&Known] = &[$(&$id),*];
    };
}

const ONE: Answer = Answer::Integer(1);
const ZERO: Answer = Answer::Integer(0);
const NIL: Answer = Answer::Nil;

const SAY_ZERO: Step = Say::Integer(0).alone();
const SAY_ONE: Step = Say::Integer(1).alone();
const SAY_NIL: Step = Say::Nil.alone();
const SAY_ERROR: Step = Say::Error("ERR ERROR").alone();

const GET: &[Word] = &[Is("get"), Key(1)];
const PTTL: &[Word] = &[Is("pttl"), Key(1)];
const PEXPIREAT: &[Word] = &[Is("pexpireat"), Key(1), Arg(2)];
const SET_PX: &[Word] = &[Is("set"), Key(1), Arg(1), Is("px"), Arg(2)];
const SET_PXAT: &[Word] = &[Is("set"), Key(1), Arg(1), Is("pxat"), Arg(2)];
const SET_NX_PX: &[Word] = &[Is("set"), Key(1), Arg(1), Is("nx"), Is("px"), Arg(2)];
const SET_NX_PXAT: &[Word] = &[Is("set"), Key(1), Arg(1), Is("nx"), Is("pxat"), Arg(2)];
const SET_XX_PX: &[Word] = &[Is("set"), Key(1), Arg(1), Is("xx"), Is("px"), Arg(2)];

/// Changes the key if the token holds it.
const fn shape(write: Write, held: Answer, mismatch: Answer, absent: Answer) -> Behaviour {
    Behaviour::Shape(Shape {
        write,
        held,
        mismatch,
        absent,
    })
}

/// Deletes the key if the token holds it.
const fn release(held: Answer, mismatch: Answer, absent: Answer) -> Behaviour {
    shape(Write::Delete, held, mismatch, absent)
}

/// Sets the TTL if the token holds the key.
const fn extend(unit: Unit, held: Answer, otherwise: Answer) -> Behaviour {
    shape(Write::Expire(unit), held, otherwise, otherwise)
}

/// One step for each state of the key.
const fn cases(absent: Step, own: Step, foreign: Step) -> Behaviour {
    Behaviour::Cases(Cases {
        token: Arg(1),
        absent,
        own,
        foreign,
    })
}

/// One step for the holder and another for everybody else.
const fn held(own: Step, otherwise: Step) -> Behaviour {
    cases(otherwise, own, otherwise)
}

behaviours! {
    /// Deletes the holder's key: 1, otherwise 0.
    RELEASE = release(ONE, ZERO, ZERO);

    /// As `RELEASE`, but -1 when there is no key.
    RELEASE_ABSENT_MINUS_ONE = release(ONE, ZERO, Answer::Integer(-1));

    /// 1, or -1 when there is no key, or -2 for another holder.
    RELEASE_GRADED = release(ONE, Answer::Integer(-2), Answer::Integer(-1));

    /// 1, otherwise nil.
    RELEASE_OR_NIL = release(ONE, NIL, NIL);

    /// 1, or status OK when there is no key, or an error for another holder.
    RELEASE_OR_ERROR = cases(Say::Status("OK").alone(), run(DELETE, Say::Reply), SAY_ERROR);

    /// Deletes the key for any holder: 1, otherwise 0.
    DELETE_ANY = Sequence(&[DELETE]);

    /// Sets the holder's TTL in milliseconds: 1, otherwise 0.
    EXTEND = extend(Unit::Millis, ONE, ZERO);

    /// 1, otherwise nil.
    EXTEND_OR_NIL = extend(Unit::Millis, ONE, NIL);

    /// Sets the holder's TTL in seconds: 0, otherwise 1.
    EXTEND_SECONDS_INVERTED = extend(Unit::Seconds, ZERO, ONE);

    /// Sets the holder's TTL in seconds, or removes it for 0 and less: 1, otherwise 0.
    EXTEND_SECONDS_OR_PERSIST = Steps(steps::extend_or_persist);

    /// Replaces a TTL with another in seconds: 0, or 1 for another holder, or 2 when there is no
    /// TTL.
    EXTEND_SECONDS_WITH_TTL = Steps(steps::extend_seconds_with_ttl);

    /// Moves the holder's deadline later; an error for any other caller.
    EXTEND_LATER_OR_ERROR = held(
        run(&[Is("pexpire"), Key(1), Arg(2), Is("gt")], Say::Reply),
        Say::Error("NOT LOCKED").alone(),
    );

    /// Sets the holder's deadline as a point in time: 1, otherwise 0.
    EXTEND_AT = held(run(PEXPIREAT, Say::Reply), SAY_ZERO);

    /// Like `EXTEND_AT`, and reads the key so that the caller's cache is notified of changes.
    EXTEND_AT_AND_READ = Steps(steps::extend_at_and_read);

    /// Sets the holder's key again: 1, otherwise 0.
    EXTEND_BY_SET = held(run(SET_PX, Say::Integer(1)), SAY_ZERO);

    /// Sets the holder's key again: status OK, otherwise the text ERR.
    EXTEND_BY_SET_OR_TEXT = held(run(SET_XX_PX, Say::Reply), Say::Text("ERR").alone());

    /// The same with the TTL and the token passed as keys: status OK, otherwise 0.
    EXTEND_BY_SET_FROM_KEYS = Behaviour::Cases(Cases {
        token: Key(3),
        absent: SAY_ZERO,
        own: run(&[Is("set"), Key(1), Key(3), Is("xx"), Is("px"), Key(2)], Say::Reply),
        foreign: SAY_ZERO,
    });

    /// Sets the key again for any holder, or acquires a free one: text OK, or status OK.
    EXTEND_ANY_OR_ACQUIRE = cases(
        run(SET_NX_PX, Say::Reply),
        run(SET_XX_PX, Say::Text("OK")),
        run(SET_XX_PX, Say::Text("OK")),
    );

    /// Extends, or acquires a free key: 1, otherwise 0.
    EXTEND_OR_ACQUIRE = held(run(PEXPIRE, Say::Reply), run(SET_NX_PX, Say::Done));

    /// Extends, or acquires a free key: 1, otherwise -1.
    EXTEND_OR_CREATE = cases(
        run(SET_PX, Say::Integer(1)),
        run(PEXPIRE, Say::Reply),
        Say::Integer(-1).alone(),
    );

    /// Replaces a TTL: 1, or 0 when not held or without a TTL.
    EXTEND_WITH_TTL = Steps(steps::extend_with_ttl);

    /// Adds to a TTL: 1, or 0 when not held or without a TTL.
    EXTEND_ADDING = Steps(steps::extend_adding);

    /// Adds to a TTL if the third argument is 0, otherwise replaces it.
    EXTEND_ADDING_OR_REPLACING = Steps(steps::extend_adding_or_replacing);

    /// Extends while enough time is left; returns the outcome and the TTL that was left.
    EXTEND_ENOUGH_LEFT = Steps(steps::extend_enough_left);

    /// SET NX PX: status OK, otherwise nil.
    ACQUIRE = Sequence(&[SET_NX_PX]);

    /// The same with the deadline as a point in time, with a read after it so that the caller's
    /// cache is notified of changes.
    ACQUIRE_AT_AND_READ = Sequence(&[SET_NX_PXAT, GET]);

    /// Like `ACQUIRE`, with a read.
    ACQUIRE_AND_READ = Sequence(&[SET_NX_PX, GET]);

    /// Sets the key for any holder, and reads it.
    FORCE_AND_READ = Sequence(&[SET_PX, GET]);

    /// The same with the deadline as a point in time.
    FORCE_AT_AND_READ = Sequence(&[SET_PXAT, GET]);

    /// Acquires a free key or sets the holder's again: status OK, otherwise nil.
    ACQUIRE_OR_EXTEND = cases(run(SET_PX, Say::Reply), run(SET_PX, Say::Reply), SAY_NIL);

    /// The same, but a free key only if the third argument is `yes`.
    ACQUIRE_IF_ALLOWED_OR_EXTEND = Steps(steps::acquire_if_allowed_or_extend);

    /// The same as `ACQUIRE_OR_EXTEND`, but an error for any other caller.
    ACQUIRE_OR_ERROR = cases(run(SET_PX, Say::Reply), run(SET_PX, Say::Reply), SAY_ERROR);

    /// Acquires a free key or extends the holder's: 1, otherwise nil.
    ACQUIRE_OR_NIL = cases(run(SET_PX, Say::Integer(1)), run(PEXPIRE, Say::Integer(1)), SAY_NIL);

    /// Acquires a free key with the TTL if there is one: 1, otherwise 0.
    ACQUIRE_OPTIONAL_TTL = Steps(steps::acquire_optional_ttl);

    /// 1 for the holder, without any change, and for a successful acquire; otherwise 0.
    ACQUIRE_REENTRANT = held(SAY_ONE, run(SET_NX_PX, Say::Done));

    /// Acquires a free key: 1, otherwise 0.
    ACQUIRE_FREE = cases(run(SET_PX, Say::Integer(1)), SAY_ZERO, SAY_ZERO);

    /// Acquires a free key with a TTL in seconds: status OK, otherwise nil.
    ACQUIRE_FREE_SECONDS = cases(
        run(&[Is("setex"), Key(1), Arg(2), Arg(1)], Say::Reply),
        SAY_NIL,
        SAY_NIL,
    );

    /// Acquires all keys or none: their number, otherwise 0.
    ACQUIRE_ALL = Steps(steps::acquire_all);

    /// Sets all keys again or none: their number, otherwise 0.
    EXTEND_ALL = Steps(steps::extend_all);

    /// Deletes the keys that are held: their number.
    RELEASE_ALL = Steps(steps::release_all);

    /// Acquires all keys, each with its own token, or none; returns which key was held.
    ACQUIRE_EACH = Steps(steps::acquire_each);

    /// Acquires all keys, or takes them over if the first bytes of the token match: status OK,
    /// otherwise nil.
    OBTAIN_ALL = Steps(steps::obtain_all);

    /// The same for one key with SET.
    OBTAIN_ONE = Steps(steps::obtain_one);

    /// Deletes all keys if all are held: status OK, otherwise nil.
    RELEASE_ALL_OR_NONE = Steps(steps::release_all_or_none);

    /// Extends all keys if all are held: status OK, otherwise nil.
    EXTEND_ALL_OR_NONE = Steps(steps::extend_all_or_none);

    /// The shortest TTL if all keys are held, otherwise nil.
    SHORTEST_TTL = Steps(steps::shortest_ttl);

    /// The holder's TTL, otherwise -3.
    TTL_OR_MINUS_THREE = held(run(PTTL, Say::Reply), Say::Integer(-3).alone());

    /// The holder's TTL, or 0 without one or for any other caller.
    TTL_OR_ZERO = held(run(PTTL, Say::Positive), SAY_ZERO);

    /// The holder's TTL in seconds, otherwise an error.
    TTL_OR_ERROR = held(run(&[Is("ttl"), Key(1)], Say::Reply), SAY_ERROR);

    /// The token and the TTL, whatever they are.
    TOKEN_AND_TTL = Steps(steps::token_and_ttl);

    /// The token and the TTL, or nil when there is no key.
    TOKEN_AND_TTL_OR_NIL = Steps(steps::token_and_ttl_or_nil);

    /// Acquires the first key that is free: its name and number, otherwise nil.
    FIRST_FREE = Steps(steps::first_free);

    /// Tests whether TIME and a write can be in one script: 1.
    TIME_PROBE = Steps(steps::time_probe);
}
