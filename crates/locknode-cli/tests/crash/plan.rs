//! What a seed decides: the kind of node, its loads, and when and how each of its runs ends.

use std::time::Duration;

/// A small generator, the same on every machine and in every version.
#[derive(Debug)]
pub(crate) struct Random(u64);

/// What the nodes of a seed keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A directory and a `max-ttl` that is below the slack of the horizon: the TTL in use decides the wait.
    Short,
    /// A directory and a `max-ttl` above it: the horizon is often sooner.
    Wide,
    /// Every lock is on the log.
    Always,
    /// Every start with another `max-ttl` and durability.
    Changing,
    /// No directory.
    Memory,
}

/// How a run of a node ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// SIGKILL that long after it served first.
    Kill(Duration),
    /// SIGKILL that long after it listened.
    KillEarly(Duration),
    /// SIGKILL that long after the process was started.
    KillAtBirth(Duration),
    /// SIGTERM that long after it served first.
    Stop(Duration),
    /// SIGTERM, and SIGKILL so much later.
    CutStop(Duration, Duration),
}

/// The settings of one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) max_ttl: Duration,
    pub(crate) has_directory: bool,
    pub(crate) is_always: bool,
    pub(crate) is_first_start: bool,
    /// Locks that fill the log.
    pub(crate) has_fat_tokens: bool,
    /// The node does not listen in quarantine.
    pub(crate) is_refusing: bool,
    pub(crate) threads: u64,
    /// The disk keeps only what was synced, and each sync takes so much longer.
    pub(crate) lazy_disk: Option<Duration>,
}

impl Random {
    /// The numbers of a seed; `stream` tells several that belong to one seed.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        Self(seed.wrapping_mul(0x2545_F491_4F6C_DD1D) ^ stream.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    /// Splitmix64.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// From `low` milliseconds to `high`, to the microsecond.
    pub(crate) fn between_ms(&mut self, low: u64, high: u64) -> Duration {
        Duration::from_micros(low * 1000 + self.below((high - low) * 1000))
    }

    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

impl Kind {
    pub(crate) fn of(seed: u64) -> Self {
        const KINDS: [Kind; 5] = [
            Kind::Short,
            Kind::Wide,
            Kind::Always,
            Kind::Changing,
            Kind::Memory,
        ];
        let len = u64::try_from(KINDS.len()).expect("a few");
        KINDS[usize::try_from(seed % len).expect("a few")]
    }

    /// The settings of a run.
    pub(crate) fn settings(self, random: &mut Random, run: u64) -> Settings {
        let max_ttl_ms = match self {
            Self::Wide => WIDE_MS,
            Self::Changing => CHANGING_MS[usize::try_from(random.below(3)).expect("three")],
            Self::Short | Self::Always | Self::Memory => SHORT_MS,
        };
        Settings {
            max_ttl: Duration::from_millis(max_ttl_ms),
            has_directory: self != Self::Memory,
            is_always: self == Self::Always || (self == Self::Changing && random.chance(40)),
            is_first_start: self != Self::Memory && run == 0 && random.chance(50),
            has_fat_tokens: self == Self::Always,
            is_refusing: random.chance(10),
            threads: 1 + random.below(2),
            lazy_disk: if self != Self::Memory && random.chance(50) {
                Some(random.between_ms(0, SYNC_MS))
            } else {
                None
            },
        }
    }

    /// The longest `max-ttl` of any run.
    pub(crate) fn max_ttl_max(self) -> Duration {
        Duration::from_millis(match self {
            Self::Wide => WIDE_MS,
            Self::Changing => CHANGING_MS[2],
            Self::Short | Self::Always | Self::Memory => SHORT_MS,
        })
    }

    /// How a run ends.
    pub(crate) fn end(self, random: &mut Random) -> End {
        let load = |random: &mut Random| match random.below(4) {
            0 => random.between_ms(0, 15),
            1 if self == Self::Wide => random.between_ms(0, 900),
            _ => random.between_ms(5, 200),
        };
        match random.below(100) {
            0..52 => End::Kill(load(random)),
            52..62 => End::KillEarly(random.between_ms(0, 150)),
            62..72 => End::KillAtBirth(random.between_ms(0, 40)),
            72..86 => End::Stop(load(random)),
            _ => End::CutStop(load(random), random.between_ms(0, 12)),
        }
    }
}

impl Settings {
    /// The command line of the node.
    pub(crate) fn flags(&self, directory: &str) -> Vec<String> {
        let mut flags = vec![
            "serve".to_owned(),
            "--port=0".to_owned(),
            format!("--threads={}", self.threads),
            format!("--max-ttl={}ms", self.max_ttl.as_millis()),
        ];
        let chosen = [
            (self.has_directory, &*format!("--dir={directory}")),
            (self.is_always, "--durability=always"),
            (self.is_first_start, "--first-start"),
            (self.is_refusing, "--quarantine=refuse"),
        ];
        let chosen = chosen.iter().filter(|(is_chosen, _)| *is_chosen);
        flags.extend(chosen.map(|(_, flag)| (*flag).to_owned()));
        flags
    }
}

/// The seeds of a run of the tests: `LOCKNODE_CRASH_SEEDS`, such as `7` or `0..100`.
pub(crate) fn seeds() -> Vec<u64> {
    let Ok(text) = std::env::var("LOCKNODE_CRASH_SEEDS") else {
        return (0..SEEDS).collect();
    };
    let number = |text: &str| text.trim().parse::<u64>().expect("a number");
    match text.split_once("..") {
        Some((from, to)) => (number(from)..number(to)).collect(),
        None => text.split(',').map(number).collect(),
    }
}

/// SIGKILLs per seed: `LOCKNODE_CRASH_KILLS`.
pub(crate) fn kills_per_seed() -> u64 {
    let given = std::env::var("LOCKNODE_CRASH_KILLS");
    given.map_or(KILLS, |kills| kills.parse().expect("a number"))
}

/// Whether neither seeds nor kills are given: fewer may not reach everything.
pub(crate) fn is_usual() -> bool {
    let is_given = |name: &str| std::env::var_os(name).is_some();
    !is_given("LOCKNODE_CRASH_SEEDS") && !is_given("LOCKNODE_CRASH_KILLS")
}

/// With [`KILLS`], the 200 kills that the project promises; each kind twice.
const SEEDS: u64 = 10;

/// See [`SEEDS`].
const KILLS: u64 = 20;

/// Short enough to be waited for hundreds of times, and long enough that locks live longer than a restart takes.
const SHORT_MS: u64 = 400;

/// See [`SHORT_MS`]; also the wait is told from one run's to the next one's.
const CHANGING_MS: [u64; 3] = [200, 400, 800];

/// Several batches of every client; a start, with half a dozen syncs, takes as long as a lock lives.
const SYNC_MS: u64 = 40;

/// Above the slack of a second and its lead.
const WIDE_MS: u64 = 1600;
