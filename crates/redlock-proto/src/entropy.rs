//! Where random bytes come from.

/// A source of random bytes, for tokens and for the spread of retries. A client draws them from the operating system;
/// a simulation brings a source that a seed determines.
pub trait Entropy {
    /// Fills `bytes` with random ones.
    fn fill(&mut self, bytes: &mut [u8]);
}
