//! MONITOR, which operators use with redis-cli and redis-commander to see what clients send.

use locknode_resp::Encoder;

use super::context::Context;
use super::secrets;
use super::spec::{Flags, Keys, Spec, exact, specs};
use crate::monitors::Monitor;

fn monitor(context: &mut Context<'_, '_>, _: &[&[u8]; 1], reply: &mut Encoder<'_>) {
    let (observers, session) = (&context.services.observers, &mut *context.session);
    if session.monitor.is_none() {
        session.monitor = Some(Box::new(Monitor::start(observers, &session.client)));
    }
    reply.ok();
}

/// Shows a command that has run to those who watch, as Redis does: passwords are hidden, and so is
/// what concerns the administration.
#[cold]
pub(super) fn show(context: &Context<'_, '_>, spec: &Spec, args: &[&[u8]]) {
    if spec.row(args).unwrap_or(spec).flags.has(Flags::ADMIN) {
        return;
    }
    let secrets = secrets::of(spec, args);
    let words = args.iter().enumerate();
    let words = words.map(|(at, word)| (!secrets.contains(&at)).then_some(*word));
    let session = &*context.session;
    let monitors = &context.services.observers.monitors;
    monitors.show(context.moment.wall, session.db, &session.client, words);
}

/// The commands of this family.
pub(crate) const SPECS: &[Spec] = specs! {
    /// Sends every command that any client runs from now on; RESET ends it.
    "monitor" since "1.0.0", ..MONITOR;
};

const MONITOR: Spec = Spec::of(
    exact!(monitor),
    Flags::ADMIN.and(Flags::NOSCRIPT).and(Flags::LOADING),
    Keys::None,
    "server",
);
