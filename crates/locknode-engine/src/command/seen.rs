//! What others see of a command that has run: MONITOR shows it, and its reads are tracked.

use super::context::Context;
use super::spec::Spec;
#[cfg(feature = "compat")]
use crate::flags::Flags;

impl Context<'_, '_> {
    /// Shows a command that has run to those who watch by MONITOR. Call this after each command of a
    /// transaction, too.
    #[cold]
    pub(crate) fn show(&self, spec: &Spec, args: &[&[u8]]) {
        #[cfg(feature = "compat")]
        if self.services.observers.monitors.are_there() {
            super::monitor::show(self, spec, args);
        }
        let _ = (spec, args);
    }

    /// Records which keys a command has read, if its client caches them. Call this after each
    /// command of a script, too.
    #[inline]
    pub(crate) fn note_reads(&mut self, spec: &Spec, args: &[&[u8]]) {
        #[cfg(feature = "compat")]
        if self.session.tracks_reads() && spec.flags.has(Flags::READONLY) {
            let db = self.session.db;
            for key in spec.keys.of(args) {
                let hash = self.space.hash(db, key);
                self.space.shard_of(hash).note_read(db, key);
            }
        }
        let _ = (spec, args);
    }
}
