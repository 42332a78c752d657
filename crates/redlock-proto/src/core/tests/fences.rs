//! Fencing tokens that clients were given, and whether they are an order.

use crate::fencing_token::FencingToken;

/// One lock that a client was handed. Times are true ones.
#[derive(Clone, Debug)]
pub(super) struct Success {
    pub(super) key: Vec<u8>,
    pub(super) fencing: FencingToken,
    /// When its attempt began, before the first byte was sent.
    pub(super) started: u64,
    /// When the client was told.
    pub(super) told: u64,
}

/// All of them.
#[derive(Clone, Default, Debug)]
pub(super) struct Fences {
    all: Vec<Success>,
}

impl Fences {
    /// No two have the same token, and one that was had before another began has the lower one. That holds whatever
    /// clocks did, and whether or not anybody else was excluded.
    pub(super) fn add(&mut self, new: Success) -> Result<(), String> {
        for old in self.all.iter().filter(|old| old.key == new.key) {
            let is_fine = match (old.told < new.started, new.told < old.started) {
                (true, _) => old.fencing < new.fencing,
                (_, true) => new.fencing < old.fencing,
                _ => old.fencing != new.fencing,
            };
            if !is_fine {
                return Err(format!("fencing tokens out of order: {old:?} and {new:?}"));
            }
        }
        self.all.push(new);
        Ok(())
    }
}
