//! Sorted sets: holders with their deadlines (Symfony, redis-semaphore, Redisson's permits) and
//! queues with timeouts (Redisson's fair lock).

use std::ops::Bound;

use locknode_resp::{Encoder, Protocol, parse_integer};

use super::super::context::Context;
use super::super::refusal;
use super::super::spec::{Flags, Keys, Spec, exact, least, specs};
use super::{added_bytes, len, positions, read, remove, reply_len};
use crate::values::{Score, SortedSet};

/// The options of ZADD.
#[derive(Clone, Copy, Debug, Default)]
struct AddOptions {
    /// NX: leave members that are there.
    only_new: bool,
    /// XX: add no member.
    only_old: bool,
    /// CH: count moved members, too.
    counts_moved: bool,
}

fn zadd(
    context: &mut Context<'_, '_>,
    [_, key, first, second]: &[&[u8]; 4],
    rest: &[&[u8]],
    reply: &mut Encoder<'_>,
) {
    let mut words = [&[*first, *second], rest].concat();
    let options = add_options(&mut words);
    let (pairs, []) = words.as_chunks::<2>() else {
        return refusal::syntax(reply);
    };
    if pairs.is_empty() {
        return refusal::syntax(reply);
    }
    if options.only_new && options.only_old {
        return reply.error("ERR XX and NX options at the same time are not compatible");
    }
    let scores: Option<Vec<Score>> = pairs.iter().map(|[score, _]| parse_score(score)).collect();
    let Some(scores) = scores else {
        return reply.error(NOT_A_FLOAT);
    };
    add(
        context,
        key,
        pairs
            .iter()
            .map(|[_, member]| *member)
            .zip(scores)
            .collect(),
        options,
        reply,
    );
}

/// Takes the options off the front.
fn add_options(words: &mut Vec<&[u8]>) -> AddOptions {
    let mut options = AddOptions::default();
    let mut taken = 0;
    for word in words.iter() {
        let option = match word {
            _ if word.eq_ignore_ascii_case(b"nx") => &mut options.only_new,
            _ if word.eq_ignore_ascii_case(b"xx") => &mut options.only_old,
            _ if word.eq_ignore_ascii_case(b"ch") => &mut options.counts_moved,
            _ => break,
        };
        *option = true;
        taken += 1;
    }
    words.drain(..taken);
    options
}

/// Adds members, or moves them. At the memory limit this is served if all are there: it may renew a
/// lock.
fn add(
    context: &mut Context<'_, '_>,
    key: &[u8],
    members: Vec<(&[u8], Score)>,
    options: AddOptions,
    reply: &mut Encoder<'_>,
) {
    let is_out_of_memory = context.services.is_out_of_memory(context.space);
    let entry = context.entry(key);
    let set = match entry.read::<SortedSet>() {
        Ok(set) => set,
        Err(wrong) => return wrong.refuse(reply),
    };
    if set.is_none() && options.only_old {
        return reply.integer(0);
    }
    let is_new = |member: &[u8]| set.is_none_or(|set| set.score(member).is_none());
    let new = members
        .iter()
        .map(|(member, _)| *member)
        .filter(|member| is_new(member));
    let adds = added_bytes(new) * 2;
    if adds > 0 && !options.only_old && is_out_of_memory {
        return reply.error(refusal::OOM);
    }
    entry.grow::<SortedSet>(adds, reply, |set, reply| {
        let (mut added, mut moved) = (0, 0);
        for (member, score) in members {
            match set.score(member) {
                Some(old) if options.only_new || old == score => {}
                None if options.only_old => {}
                old => {
                    set.insert(member, score);
                    added += usize::from(old.is_none());
                    moved += usize::from(old.is_some());
                }
            }
        }
        reply_len(
            reply,
            if options.counts_moved {
                added + moved
            } else {
                added
            },
        );
        added + moved > 0
    });
}

fn zincrby(
    context: &mut Context<'_, '_>,
    [_, key, by, member]: &[&[u8]; 4],
    reply: &mut Encoder<'_>,
) {
    let Some(by) = parse_number(by) else {
        return reply.error(NOT_A_FLOAT);
    };
    let entry = context.entry(key);
    let old = match entry.read::<SortedSet>() {
        Ok(set) => set.and_then(|set| set.score(member)),
        Err(wrong) => return wrong.refuse(reply),
    };
    let sum = old.map_or(by, |old| old.get() + by);
    let Some(new) = Score::new(sum) else {
        return reply.error("ERR resulting score is not a number (NaN)");
    };
    let adds = added_bytes(old.is_none().then_some(*member).into_iter()) * 2;
    entry.grow::<SortedSet>(adds, reply, |set, reply| {
        set.insert(member, new);
        reply.double(sum);
        // An increment of zero, or of an infinite score, is no change and no event.
        old != Some(new)
    });
}

fn zremrangebyscore(
    context: &mut Context<'_, '_>,
    [_, key, min, max]: &[&[u8]; 4],
    reply: &mut Encoder<'_>,
) {
    let (Some(min), Some(max)) = (parse_bound(min), parse_bound(max)) else {
        return reply.error(NOT_A_BOUND);
    };
    context
        .entry(key)
        .shrink(reply, |set: Option<&mut SortedSet>, reply| {
            let mut doomed = Vec::new();
            if let Some(set) = set {
                doomed.extend(
                    set.within(min, max)
                        .map(|(member, _)| Box::<[u8]>::from(member)),
                );
                doomed.iter().for_each(|member| {
                    set.remove(member);
                });
            }
            reply_len(reply, doomed.len());
            !doomed.is_empty()
        });
}

fn zscore(context: &mut Context<'_, '_>, [_, key, member]: &[&[u8]; 3], reply: &mut Encoder<'_>) {
    read(
        context,
        key,
        reply,
        |set: Option<&SortedSet>, reply| match set.and_then(|set| set.score(member)) {
            Some(score) => reply.double(score.get()),
            None => reply.null(),
        },
    );
}

fn zcount(context: &mut Context<'_, '_>, [_, key, min, max]: &[&[u8]; 4], reply: &mut Encoder<'_>) {
    let (Some(min), Some(max)) = (parse_bound(min), parse_bound(max)) else {
        return reply.error(NOT_A_BOUND);
    };
    read(context, key, reply, |set: Option<&SortedSet>, reply| {
        reply_len(reply, set.map_or(0, |set| set.within(min, max).count()));
    });
}

/// Which members ZRANGE, ZREVRANGE and ZRANGEBYSCORE return.
#[derive(Clone, Copy, Debug, Default)]
struct Range {
    by_score: bool,
    is_reversed: bool,
    with_scores: bool,
    /// LIMIT: how many to skip, and how many to return.
    limit: Option<(i64, i64)>,
}

impl Range {
    /// Adds the options; only ZRANGE has BYSCORE and REV.
    fn parse(mut self, mut words: &[&[u8]], is_zrange: bool) -> Result<Self, &'static str> {
        while let Some((word, rest)) = words.split_first() {
            words = rest;
            if word.eq_ignore_ascii_case(b"withscores") {
                self.with_scores = true;
            } else if word.eq_ignore_ascii_case(b"limit") {
                let ([skip, count], rest) = rest.split_first_chunk().ok_or(refusal::SYNTAX)?;
                let limit = parse_integer(skip).zip(parse_integer(count));
                self.limit = Some(limit.ok_or(refusal::NOT_AN_INTEGER)?);
                words = rest;
            } else if is_zrange && word.eq_ignore_ascii_case(b"byscore") {
                self.by_score = true;
            } else if is_zrange && word.eq_ignore_ascii_case(b"rev") {
                self.is_reversed = true;
            } else {
                return Err(refusal::SYNTAX);
            }
        }
        // To Redis a count of -1 is no LIMIT.
        if self.limit.is_some_and(|(_, count)| count != -1) && !self.by_score {
            return Err(LIMIT_OF_POSITIONS);
        }
        Ok(self)
    }

    fn write(self, found: Vec<(&[u8], Score)>, reply: &mut Encoder<'_>) {
        let is_flat = self.with_scores && reply.protocol() == Protocol::Resp2;
        reply.array(found.len() * if is_flat { 2 } else { 1 });
        for (member, score) in found {
            if self.with_scores && !is_flat {
                reply.array(2);
            }
            reply.bulk(member);
            if self.with_scores {
                reply.double(score.get());
            }
        }
    }
}

fn zrange(
    context: &mut Context<'_, '_>,
    (range, is_zrange): (Range, bool),
    [_, key, start, stop]: &[&[u8]; 4],
    words: &[&[u8]],
    reply: &mut Encoder<'_>,
) {
    let range = match range.parse(words, is_zrange) {
        Ok(range) => range,
        Err(refusal) => return reply.error(refusal),
    };
    if range.by_score {
        return by_score(context, range, key, (start, stop), reply);
    }
    let (Some(start), Some(stop)) = (parse_integer(start), parse_integer(stop)) else {
        return reply.error(refusal::NOT_AN_INTEGER);
    };
    read(context, key, reply, |set: Option<&SortedSet>, reply| {
        let Some(set) = set else {
            return reply.array(0);
        };
        let within = positions(set.len(), start, stop);
        let found = if range.is_reversed {
            set.iter()
                .rev()
                .skip(within.start)
                .take(within.len())
                .collect()
        } else {
            set.iter().skip(within.start).take(within.len()).collect()
        };
        range.write(found, reply);
    });
}

fn by_score(
    context: &mut Context<'_, '_>,
    range: Range,
    key: &[u8],
    (start, stop): (&[u8], &[u8]),
    reply: &mut Encoder<'_>,
) {
    let (min, max) = if range.is_reversed {
        (stop, start)
    } else {
        (start, stop)
    };
    let (Some(min), Some(max)) = (parse_bound(min), parse_bound(max)) else {
        return reply.error(NOT_A_BOUND);
    };
    let (skip, count) = range.limit.unwrap_or((0, -1));
    read(context, key, reply, |set: Option<&SortedSet>, reply| {
        // As in Redis, a negative number to skip returns nothing, and a negative count all.
        let (Some(set), Ok(skip)) = (set, usize::try_from(skip)) else {
            return reply.array(0);
        };
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let members = set.within(min, max);
        let found = if range.is_reversed {
            members.rev().skip(skip).take(count).collect()
        } else {
            members.skip(skip).take(count).collect()
        };
        range.write(found, reply);
    });
}

/// Parses a score: a number or an infinity.
fn parse_score(word: &[u8]) -> Option<Score> {
    parse_number(word).and_then(Score::new)
}

fn parse_number(word: &[u8]) -> Option<f64> {
    let number: f64 = std::str::from_utf8(word).ok()?.parse().ok()?;
    // A number too large for a double is no infinity.
    let is_named = word
        .to_ascii_lowercase()
        .windows(3)
        .any(|part| part == b"inf");
    (!number.is_nan() && (number.is_finite() || is_named)).then_some(number)
}

/// Parses one end of a range of scores; `(` excludes it.
fn parse_bound(word: &[u8]) -> Option<Bound<Score>> {
    match word.strip_prefix(b"(") {
        Some(word) => parse_end(word).map(Bound::Excluded),
        None => parse_end(word).map(Bound::Included),
    }
}

/// Parses a score as Redis does here: nothing is zero, and a number too large is infinite.
fn parse_end(word: &[u8]) -> Option<Score> {
    if word.is_empty() {
        return Score::new(0.0);
    }
    let text = std::str::from_utf8(word).ok()?;
    Score::new(text.parse().ok()?)
}

const NOT_A_FLOAT: &str = "ERR value is not a valid float";
const NOT_A_BOUND: &str = "ERR min or max is not a float";
const LIMIT_OF_POSITIONS: &str =
    "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX";

const POSITIONS: Range = Range {
    by_score: false,
    is_reversed: false,
    with_scores: false,
    limit: None,
};
const REVERSED: Range = Range {
    is_reversed: true,
    ..POSITIONS
};
const BY_SCORE: Range = Range {
    by_score: true,
    ..POSITIONS
};

const READ: Spec = Spec::of(
    exact!(zscore),
    Flags::READONLY.and(Flags::FAST),
    Keys::One,
    "sorted-set",
);

const WRITE: Spec = Spec::of(
    least!(zadd),
    Flags::WRITE.and(Flags::FAST),
    Keys::One,
    "sorted-set",
);

/// The commands of this family, each with a library that sends it.
pub(crate) const SPECS: &[Spec] = specs! {
    /// Adds members to a sorted set, or moves them (Symfony, redis-semaphore, Redisson, redlock4j).
    "zadd" "key [NX|XX] [CH] score member [score member ...]" since "1.2.0", ..WRITE;

    /// Adds a number to the score of a member (Redisson's fair lock).
    "zincrby" "key increment member" since "1.2.0",
        call: exact!(zincrby), flags: Flags::WRITE.and(Flags::DENYOOM).and(Flags::FAST), ..WRITE;

    /// Removes members of a sorted set (Symfony, Redisson, redlock4j).
    "zrem" "key member [member ...]" since "1.2.0", call: least!(remove, SortedSet::remove), ..WRITE;

    /// Removes the members with scores in a range: expired holders (Symfony, redis-semaphore).
    "zremrangebyscore" "key min max" since "1.2.0",
        call: exact!(zremrangebyscore), flags: Flags::WRITE, ..WRITE;

    /// Returns the score of a member (Symfony, redis-semaphore, Redisson).
    "zscore" "key member" since "1.2.0", ..READ;

    /// Counts the members of a sorted set (redis-semaphore).
    "zcard" "key" since "1.2.0", call: exact!(len::<SortedSet>), ..READ;

    /// Counts the members with scores in a range (Symfony, Redisson's permits).
    "zcount" "key min max" since "2.0.0", call: exact!(zcount), ..READ;

    /// Returns the members in a range of positions or scores (Redisson, redlock4j).
    "zrange" "key start stop [BYSCORE] [REV] [LIMIT offset count] [WITHSCORES]" since "1.2.0",
        call: least!(zrange, (POSITIONS, true)), flags: Flags::READONLY, ..READ;

    /// Returns the members in a range of positions from the last on (Symfony, rds_lock).
    "zrevrange" "key start stop [WITHSCORES]" since "1.2.0",
        call: least!(zrange, (REVERSED, false)), flags: Flags::READONLY, ..READ;

    /// Returns the members with scores in a range (Redisson's permits).
    "zrangebyscore" "key min max [WITHSCORES] [LIMIT offset count]" since "1.0.5",
        call: least!(zrange, (BY_SCORE, false)), flags: Flags::READONLY, ..READ;
};
