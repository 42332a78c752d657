//! SLOWLOG: the commands that took longest, until newer ones take their place.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::Mutex;

use crate::client::NameKind;
use crate::ran::Ran;

/// The log; bounded by `slowlog-max-len`.
#[derive(Debug, Default)]
pub(crate) struct SlowLog(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    /// The newest first.
    entries: VecDeque<SlowCommand>,
    /// How many there have been.
    count: u64,
}

/// A command that took long.
#[derive(Clone, Debug)]
pub(crate) struct SlowCommand {
    pub(crate) id: u64,
    pub(crate) unix_seconds: u64,
    pub(crate) took: Duration,
    /// Its words, shortened, without passwords.
    pub(crate) words: Vec<Box<[u8]>>,
    pub(crate) addr: Box<str>,
    pub(crate) name: Vec<u8>,
}

impl SlowLog {
    /// Adds a command to a log of at most `len_max`.
    pub(super) fn add(&self, ran: &Ran<'_>, took: Duration, len_max: u64) {
        let len_max = usize::try_from(len_max).unwrap_or(usize::MAX);
        let mut log = self.0.lock();
        let id = log.count;
        log.count += 1;
        if len_max > 0 {
            log.entries.push_front(SlowCommand {
                id,
                unix_seconds: ran.wall.as_unix_nanos() / 1_000_000_000,
                took,
                words: words(ran),
                addr: ran.client.addr.clone(),
                name: ran.client.name(NameKind::Connection),
            });
        }
        log.entries.truncate(len_max);
    }

    /// Returns the newest entries.
    pub(crate) fn newest(&self, count: usize) -> Vec<SlowCommand> {
        self.0.lock().entries.iter().take(count).cloned().collect()
    }

    /// Returns how many entries there are.
    pub(crate) fn len(&self) -> usize {
        self.0.lock().entries.len()
    }

    /// Returns how many commands were slow since the start.
    pub(crate) fn count(&self) -> u64 {
        self.0.lock().count
    }

    /// Removes all entries.
    pub(crate) fn clear(&self) {
        self.0.lock().entries.clear();
    }
}

/// The words of a command, shortened as Redis shortens them.
fn words(ran: &Ran<'_>) -> Vec<Box<[u8]>> {
    let all = ran.args.len();
    let kept = if all > WORDS_MAX { WORDS_MAX - 1 } else { all };
    let words = ran.args.iter().take(kept).enumerate();
    let mut words: Vec<Box<[u8]>> = words
        .map(|(at, word)| {
            if ran.secrets.contains(&at) {
                return b"(redacted)".as_slice().into();
            }
            match word.get(..WORD_LEN_MAX) {
                Some(begin) if word.len() > WORD_LEN_MAX => {
                    let rest = word.len() - WORD_LEN_MAX;
                    let rest = format!("... ({rest} more bytes)");
                    [begin, rest.as_bytes()].concat().into()
                }
                _ => (*word).into(),
            }
        })
        .collect();
    if kept < all {
        let rest = format!("... ({} more arguments)", all - kept);
        words.push(rest.into_bytes().into());
    }
    words
}

/// As in Redis.
const WORDS_MAX: usize = 32;

/// As in Redis.
const WORD_LEN_MAX: usize = 128;
