//! Where random bytes come from.

/// A source of random bytes, for tokens and for the spread of retries. The client's own draws from the operating
/// system; a simulation brings one that a seed determines.
pub trait Entropy {
    /// Fills `bytes` with random ones.
    fn fill(&mut self, bytes: &mut [u8]);
}

/// Random bytes that nobody can guess: a generator seeded by the operating system, per thread.
#[derive(Clone, Copy, Default, Debug)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn fill(&mut self, bytes: &mut [u8]) {
        use rand::Rng as _;
        rand::rng().fill_bytes(bytes);
    }
}
