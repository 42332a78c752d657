//! The kit's own generator: xoshiro256\*\*, seeded by `SplitMix64`.
//!
//! A seed that failed must fail again in ten years, on any machine. So the generator is named, its output is fixed by a
//! known-answer test, and everything drawn from it is integer arithmetic. It is no source of secrets.
//!
//! Sources: Blackman and Vigna, "Scrambled linear pseudorandom number generators" (xoshiro256\*\*, jump-free use);
//! Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (`SplitMix64`).

use redlock_proto::Entropy;

/// A stream of random numbers that its seed and its name determine.
///
/// ```
/// use locknode_testkit::Random;
///
/// let mut random = Random::new(7);
/// assert_eq!(random.next(), Random::new(7).next());
/// // Streams of one seed do not disturb each other.
/// assert_ne!(Random::stream(7, "delays", 1).next(), Random::stream(7, "delays", 2).next());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        let mut mix = seed;
        Self {
            state: [(); 4].map(|()| split_mix(&mut mix)),
        }
    }

    /// One of many streams of a seed, by a name and a number. What is drawn from one does not change another, so that
    /// a world from which a fault was taken away keeps the rest of its delays.
    pub fn stream(seed: u64, name: &str, number: u64) -> Self {
        let mut mix = seed;
        let mut folded = split_mix(&mut mix) ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for byte in name.bytes() {
            folded = (folded ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Self::new(folded)
    }

    /// 64 random bits.
    #[expect(
        clippy::should_implement_trait,
        reason = "a stream that never ends is no iterator"
    )]
    #[inline]
    pub fn next(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.state;
        let result = b.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        result
    }

    /// A number below `end`; 0 when `end` is 0. The bias is below `end` in 2^64.
    #[inline]
    pub fn below(&mut self, end: u64) -> u64 {
        let wide = u128::from(self.next()) * u128::from(end);
        u64::try_from(wide >> 64).unwrap_or(0)
    }

    /// A number from `low` to `high`, both possible; `low` when `high` is less.
    #[inline]
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low).saturating_add(1))
    }

    /// True so often in a hundred.
    #[inline]
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of the items; the default when there is none.
    pub fn pick<T: Clone + Default>(&mut self, items: &[T]) -> T {
        items
            .get(self.index(items.len()))
            .cloned()
            .unwrap_or_default()
    }

    /// A place in a list of `len` items.
    pub fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap_or(0)
    }
}

impl Entropy for Random {
    fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let drawn = self.next().to_le_bytes();
            for (to, from) in chunk.iter_mut().zip(drawn) {
                *to = from;
            }
        }
    }
}

/// The next number of a `SplitMix64` stream.
#[inline]
pub(crate) fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
