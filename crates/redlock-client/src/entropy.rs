//! Where random bytes come from.

use redlock_proto::Entropy;

/// Random bytes that nobody can guess: a generator seeded by the operating system, per thread.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn fill(&mut self, bytes: &mut [u8]) {
        use rand::Rng as _;
        rand::rng().fill_bytes(bytes);
    }
}
