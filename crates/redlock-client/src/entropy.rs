//! Where random bytes come from.

use redlock_proto::Entropy;

/// Unpredictable bytes from a generator per thread, seeded by the operating system.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn fill(&mut self, bytes: &mut [u8]) {
        use rand::Rng as _;
        rand::rng().fill_bytes(bytes);
    }
}
