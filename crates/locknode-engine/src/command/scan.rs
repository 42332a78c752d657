//! Commands over all keys of a database: KEYS, SCAN, RANDOMKEY and DBSIZE.
//!
//! SCAN goes from sub-table to sub-table of the lock table. A key never leaves its sub-table, so a
//! key that exists from the first call to the last is returned exactly once, whatever happens
//! between the calls.

use locknode_resp::{Encoder, parse_integer};

use super::context::{Context, Flow};
use super::refusal;
use super::spec::{Flags, Keys, Spec, exact, least, specs};
use crate::glob::Filter;
use crate::shard::Shard;

/// The options of one SCAN.
#[derive(Clone, Copy, Debug)]
struct Options<'a> {
    /// A hint of how many keys to examine before the call ends.
    count: usize,
    pattern: &'a [u8],
    /// TYPE: which keys to return.
    wanted_type: Option<&'a [u8]>,
}

impl<'a> Options<'a> {
    /// Parses the options.
    ///
    /// # Errors
    ///
    /// Returns the refusal.
    fn parse(mut words: &[&'a [u8]]) -> Result<Self, &'static str> {
        let mut options = Self {
            count: COUNT_DEFAULT,
            pattern: b"*",
            wanted_type: None,
        };
        while let Some((word, rest)) = words.split_first() {
            let (&operand, rest) = rest.split_first().ok_or(refusal::SYNTAX)?;
            words = rest;
            if word.eq_ignore_ascii_case(b"match") {
                options.pattern = operand;
            } else if word.eq_ignore_ascii_case(b"type") {
                options.wanted_type = Some(operand);
            } else if word.eq_ignore_ascii_case(b"count") {
                options.count = match parse_integer(operand) {
                    Some(count @ 1..) => {
                        usize::try_from(count).map_or(COUNT_MAX, |it| it.min(COUNT_MAX))
                    }
                    Some(_) => return Err(refusal::SYNTAX),
                    None => return Err(refusal::NOT_AN_INTEGER),
                };
            } else {
                return Err(refusal::SYNTAX);
            }
        }
        Ok(options)
    }
}

/// All sub-tables of a node in a row.
#[derive(Debug)]
struct Tables<'s> {
    shards: Vec<&'s Shard>,
    per_shard: usize,
}

impl<'s> Tables<'s> {
    fn of(context: &'s mut Context<'_, '_>) -> Self {
        let per_shard = context.space.tables_per_shard();
        Self {
            shards: context.space.shards().map(|shard| &*shard).collect(),
            per_shard,
        }
    }

    fn len(&self) -> usize {
        self.shards.len() * self.per_shard
    }

    /// Returns the shard of a sub-table with a number below [`Tables::len`], and its number there.
    fn at(&self, table: usize) -> (&'s Shard, usize) {
        (self.shards[table / self.per_shard], table % self.per_shard)
    }
}

/// Keys to return, borrowed from the table.
#[derive(Debug, Default)]
struct Found<'s> {
    keys: Vec<&'s [u8]>,
    /// A lower bound of the bytes that they take in the reply.
    bytes: usize,
}

impl<'s> Found<'s> {
    fn push(&mut self, key: &'s [u8]) {
        self.bytes += key.len() + KEY_OVERHEAD;
        self.keys.push(key);
    }

    fn write(&self, reply: &mut Encoder<'_>) {
        reply.array(self.keys.len());
        self.keys.iter().for_each(|key| reply.bulk(key));
    }
}

/// Goes from sub-table to sub-table, as SCAN does, and lets others in between unless it is part of a
/// script or a transaction.
fn keys(context: &mut Context<'_, '_>, [_, pattern]: &[&[u8]; 2], reply: &mut Encoder<'_>) {
    let (db, now) = (context.session.db, context.moment.time);
    let output_max = context.services.settings.output_max();
    let has_parts = context.journal.is_none() && context.services.turns.are_taken();
    let mut search = context.session.search.take().unwrap_or_default();
    let mut wanted = Filter::of(pattern);
    let tables = Tables::of(context);
    let mut element = Encoder::new(&mut search.found, reply.protocol());
    let (first, mut entries) = (search.table, 0);
    while search.table < tables.len() {
        let (shard, index) = tables.at(search.table);
        entries += shard.table_len(index);
        let is_part = entries > PART_ENTRIES || wanted.looks() > PART_LOOKS;
        if has_parts && is_part && search.table > first {
            context.session.search = Some(search);
            context.flow = Flow::Paused;
            return;
        }
        for (key, _) in shard.keys_of_table(now, db, index) {
            if wanted.passes(key) {
                element.bulk(key);
                search.count += 1;
            }
        }
        if wanted.is_spent() {
            return refusal::hard_pattern(reply, reply.out_len());
        }
        if element.out_len() > output_max {
            return refusal::reply_too_long(reply, reply.out_len());
        }
        search.table += 1;
    }
    reply.array(search.count);
    reply.raw(&search.found);
}

fn scan(
    context: &mut Context<'_, '_>,
    [_, cursor]: &[&[u8]; 2],
    words: &[&[u8]],
    reply: &mut Encoder<'_>,
) {
    let Some(cursor) = parse_cursor(cursor) else {
        return reply.error("ERR invalid cursor");
    };
    let options = match Options::parse(words) {
        Ok(options) => options,
        Err(refusal) => return reply.error(refusal),
    };
    let (db, now) = (context.session.db, context.moment.time);
    let output_max = context.services.settings.output_max();
    let mut wanted = Filter::of(options.pattern);
    let tables = Tables::of(context);
    let work_max = options.count.saturating_mul(WORK_PER_COUNT);
    let (mut found, mut sampled, mut work) = (Found::default(), 0, 0);
    // A cursor that no call returned ends the iteration.
    let mut table = usize::try_from(cursor)
        .unwrap_or(tables.len())
        .min(tables.len());
    let bytes_max = output_max / 2;
    while table < tables.len()
        && sampled < options.count
        && work < work_max
        && found.bytes <= bytes_max
        && wanted.looks() <= PART_LOOKS
    {
        let (shard, index) = tables.at(table);
        work += shard.table_len(index);
        for (key, type_name) in shard.keys_of_table(now, db, index) {
            sampled += 1;
            let is_type = |name: &[u8]| name.eq_ignore_ascii_case(type_name.as_bytes());
            if options.wanted_type.is_none_or(is_type) && wanted.passes(key) {
                found.push(key);
            }
        }
        table += 1;
    }
    if wanted.is_spent() {
        return refusal::hard_pattern(reply, reply.out_len());
    }
    if found.bytes > output_max {
        return refusal::reply_too_long(reply, reply.out_len());
    }
    let next = if table < tables.len() { table } else { 0 };
    reply.array(2);
    reply.bulk(next.to_string().as_bytes());
    found.write(reply);
}

fn randomkey(context: &mut Context<'_, '_>, _: &[&[u8]; 1], reply: &mut Encoder<'_>) {
    let (db, now) = (context.session.db, context.moment.time);
    // The commands of a batch share their moment; the count of commands differs.
    let mut dice = Dice(now.as_nanos() ^ context.services.counters.total_calls().rotate_left(40));
    let tables = Tables::of(context);
    let counts = tables.shards.iter().map(|shard| shard.key_count(db));
    if counts.sum::<u64>() > WALK_MAX {
        let lens = (0..tables.len()).map(|table| {
            let (shard, index) = tables.at(table);
            shard.table_len(index)
        });
        let len_max = lens.max().unwrap_or(0);
        // Every live key is equally likely; a throw that hits none is repeated.
        for _ in 0..THROWS_MAX {
            let (shard, index) = tables.at(dice.below(tables.len()));
            if let Some((key, _)) = shard.keys_of_table(now, db, index).nth(dice.below(len_max)) {
                return reply.bulk(key);
            }
        }
    }
    let live = || tables.shards.iter().flat_map(|shard| shard.keys(now, db));
    match live().nth(dice.below(live().count())) {
        Some(key) => reply.bulk(key),
        None => reply.null(),
    }
}

fn dbsize(context: &mut Context<'_, '_>, _: &[&[u8]; 1], reply: &mut Encoder<'_>) {
    let keys = context.space.key_count(context.session.db);
    reply.integer(i64::try_from(keys).unwrap_or(i64::MAX));
}

/// Parses a cursor like Redis: `strtoull` allows white space, a plus sign and leading zeros.
fn parse_cursor(bytes: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(bytes.trim_ascii_start()).ok()?;
    // `u64` also accepts a leading plus sign, but nothing else.
    text.parse().ok()
}

/// Pseudo-random numbers from a seed: splitmix64.
#[derive(Debug)]
struct Dice(u64);

impl Dice {
    /// Returns a number below `end`; zero when there is none.
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        // The high half of the product is below `end`, so it fits in `usize`.
        usize::try_from((u128::from(mixed) * end as u128) >> 64).unwrap_or(0)
    }
}

/// Redis's default for COUNT.
const COUNT_DEFAULT: usize = 10;

/// COUNT is a hint, and others wait as long as a call takes: some milliseconds for this many keys.
const COUNT_MAX: usize = 10_000;

/// SCAN examines up to this many entries of any database for each key of COUNT, as Redis does with
/// empty buckets: a small database next to a large one takes more calls, not longer ones.
const WORK_PER_COUNT: usize = 10;

/// What a key takes at least in a reply besides its bytes: `$n\r
/// ` and `\r
/// `.
const KEY_OVERHEAD: usize = 6;

/// With up to this many keys RANDOMKEY walks to the chosen one: below a millisecond.
const WALK_MAX: u64 = 1 << 16;

/// With more keys than [`WALK_MAX`], about every second throw hits a key if most keys are alive.
const THROWS_MAX: usize = 256;

/// After so many entries, of any database, KEYS lets others in: about 2 ms.
const PART_ENTRIES: usize = 20_000;

/// After so many comparisons of bytes, SCAN ends its call and KEYS lets others in: about 2 ms.
const PART_LOOKS: usize = 1_000_000;

const LOOK: Spec = Spec {
    since: "1.0.0",
    ..Spec::of(exact!(keys), Flags::READONLY, Keys::All, "generic")
};

/// The commands of this family.
pub(crate) const SPECS: &[Spec] = specs! {
    /// Returns the keys that match a pattern.
    "keys" "pattern", ..LOOK;

    /// Returns some of the keys, and a cursor to continue from.
    "scan" "cursor [MATCH pattern] [COUNT count] [TYPE type]" since "2.8.0",
        call: least!(scan), ..LOOK;

    /// Returns a random key.
    "randomkey", call: exact!(randomkey), ..LOOK;

    /// Counts the keys of the database, including expired ones not yet reclaimed.
    "dbsize",
        call: exact!(dbsize), flags: Flags::READONLY.and(Flags::FAST), group: "server", ..LOOK;
};
