//! The time of a script, which is always taken, unless it is one operation on the table.

use smallvec::SmallVec;

use super::context::{Context, Flow};
use crate::command_id::CommandId;
use crate::ran::Ran;
use crate::scripts::Sha;

impl Context<'_, '_> {
    /// Runs a script and takes its time, unless that is taken already.
    pub(super) fn timed(
        &mut self,
        sha: Sha,
        keys: &[&[u8]],
        argv: &[&[u8]],
        run: impl FnOnce(&mut Self),
    ) {
        if self.session.began.is_some() {
            self.session.is_timed_always = true;
            return run(self);
        }
        self.session.began = self.services.timings.begin_always();
        run(self);
        // Otherwise it goes on later.
        if self.flow != Flow::Paused {
            self.note_time(sha, keys, argv);
        }
    }

    fn note_time(&mut self, sha: Sha, keys: &[&[u8]], argv: &[&[u8]]) {
        let client = &self.session.client;
        let id = client.last_command().map_or(0, |last| last.command);
        let Some(spec) = self.commands.all().get(id) else {
            return;
        };
        let Some(began) = self.session.began.take() else {
            return;
        };
        let (sha, count) = (sha.to_hex(), keys.len().to_string());
        let mut args: SmallVec<[&[u8]; 16]> = SmallVec::new();
        args.extend([spec.name.as_bytes(), &sha, count.as_bytes()]);
        args.extend(keys.iter().chain(argv).copied());
        let ran = Ran {
            id: CommandId::new(u16::try_from(id).unwrap_or(u16::MAX)),
            flags: spec.flags,
            args: &args,
            secrets: 0..0,
            client,
            wall: self.moment.wall,
            weight: 1,
        };
        self.services
            .timings
            .end(began, &ran, &self.services.settings);
    }
}
