//! File descriptors: each connection needs one, and the system limits their number.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit of descriptors as far as it is needed and allowed, and returns how many connections there
/// is room for, `clients_max` at most.
pub(crate) fn make_room(clients_max: u64, threads: u16) -> u64 {
    // A thread has its listeners, an epoll descriptor and one to be woken by.
    let reserve = RESERVE + 8 * u64::from(threads);
    let needed = clients_max.saturating_add(reserve);
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = maximum.map_or(needed, |maximum| maximum.min(needed));
    if current.is_some_and(|current| current < raised) {
        // A refusal is seen in the limit read again below.
        let _ = setrlimit(
            Resource::Nofile,
            Rlimit {
                current: Some(raised),
                maximum,
            },
        );
    }
    match getrlimit(Resource::Nofile).current {
        None => clients_max,
        Some(allowed) => clients_max.min(allowed.saturating_sub(reserve).max(1)),
    }
}

/// Descriptors for everything that is no client: Redis keeps 32 too.
const RESERVE: u64 = 32;
