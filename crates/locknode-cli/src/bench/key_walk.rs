//! Which keys a connection uses next.
//!
//! No two connections share a key, and no two commands of one pipeline: every SET NX must be granted, or the replies
//! could not be checked.

/// An endless walk over the numbers of a connection's keys.
#[derive(Debug)]
pub(super) struct KeyWalk {
    /// The connection's own numbers are `first..first + count`.
    first: u64,
    count: u64,
    step: u64,
    position: u64,
}

impl KeyWalk {
    /// Walks over `count` keys that belong to connection `index`, jumping, so that the server's caches see what they
    /// see in use, and meeting each once before the first comes again.
    pub(super) fn over(index: u64, count: u64) -> Self {
        let count = count.max(1);
        Self {
            first: index.wrapping_mul(count),
            count,
            step: STEP % count,
            position: 0,
        }
    }

    /// Never repeats a key.
    pub(super) fn fresh(index: u64) -> Self {
        // The connection's index in the upper part leaves 2^44 keys to each of 2^20 connections.
        Self {
            first: index << 44,
            count: 1 << 44,
            step: 1,
            position: 0,
        }
    }

    /// Puts the next `count` numbers into `numbers`.
    pub(super) fn take(&mut self, count: usize, numbers: &mut Vec<u64>) {
        numbers.clear();
        for _ in 0..count {
            numbers.push(self.first.wrapping_add(self.position));
            self.position = (self.position + self.step) % self.count;
        }
    }
}

/// A prime above every number of keys, so that it shares no divisor with any of them.
const STEP: u64 = 4_294_967_311;

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_key_comes_once_before_one_comes_again() {
        for count in [1, 2, 16, 97, 2000, 4096] {
            let mut walk = KeyWalk::over(3, count);
            let mut numbers = Vec::new();
            let len = usize::try_from(count).expect("small");
            walk.take(len, &mut numbers);
            let distinct: HashSet<u64> = numbers.iter().copied().collect();
            assert_eq!(distinct.len(), len);
            assert!(
                numbers
                    .iter()
                    .all(|number| (3 * count..4 * count).contains(number))
            );
        }
    }

    #[test]
    fn fresh_keys_never_repeat_or_meet() {
        let (mut one, mut two) = (KeyWalk::fresh(0), KeyWalk::fresh(1));
        let (mut of_one, mut of_two) = (Vec::new(), Vec::new());
        one.take(1000, &mut of_one);
        two.take(1000, &mut of_two);
        let distinct: HashSet<u64> = of_one.into_iter().chain(of_two).collect();
        assert_eq!(distinct.len(), 2000);
    }
}
