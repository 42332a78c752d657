//! The source of random bytes.

/// A source of random bytes, for tokens and for the pauses between attempts. A client takes them from the
/// operating system, a simulation from a seed.
pub trait Entropy {
    /// Fills `bytes` with random bytes.
    fn fill(&mut self, bytes: &mut [u8]);
}
