//! `locknode lock`, `extend` and `release`: one process for each step, for scripts that do not fit into
//! one command of `locknode run`.

mod force;
mod token_source;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::time::Duration;

use redlock_client::{ErrorKind, Guard, Redlock, Token};

use self::token_source::TokenFlags;
use crate::acquisition::{self, AcquisitionFlags, Validity};
use crate::cluster::{self, ClusterFlags};
use crate::failure::{Exit, Failure};
use crate::json::Object;
use crate::lines::Lines;
use crate::output;
use crate::serving;
use crate::signals::Signals;

/// Acquire a lock and print its token, for scripts
///
/// The lock is held until its TTL expires; with its token, locknode extend extends it and locknode
/// release releases it. Nothing watches it meanwhile: if the work is one command, locknode run is safer.
///
/// After a signal before the token is printed, the lock is released. A --token-file is always a new file
/// that only you can read; a device, a pipe or /dev/fd/N is written to directly.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment, after_long_help = LOCK_EXAMPLES)]
pub(crate) struct LockFlags {
    #[command(flatten)]
    cluster: ClusterFlags,

    #[command(flatten)]
    acquisition: AcquisitionFlags,

    /// Write the token to this file, which only you can read, instead of standard output
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Name of the lock
    name: OsString,
}

/// Give a lock a new TTL
///
/// Works only while a majority of the nodes holds the lock with that token: an expired lock is not
/// acquired again.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment, after_long_help = EXTEND_EXAMPLES)]
pub(crate) struct ExtendFlags {
    #[command(flatten)]
    cluster: ClusterFlags,

    /// Time until the lock expires, from now on
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = acquisition::parse_ttl)]
    ttl: Duration,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Name of the lock
    name: OsString,

    #[command(flatten)]
    token: TokenFlags,
}

/// Release a lock
///
/// The nodes delete the lock only if it has that token, so nobody releases another client's lock. With
/// --force they delete it no matter who holds it, and say who held it: for a holder that hangs but still
/// renews.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment, after_long_help = RELEASE_EXAMPLES)]
pub(crate) struct ReleaseFlags {
    #[command(flatten)]
    cluster: ClusterFlags,

    /// Release the lock no matter who holds it, and print who held it
    ///
    /// The holder may go on until it next renews the lock. A resource that checks fencing tokens turns
    /// it away once it has seen the fencing token that is printed.
    #[arg(long, verbatim_doc_comment, conflicts_with_all = ["token", "token_file"])]
    force: bool,

    /// Name of the lock
    name: OsString,

    #[command(flatten)]
    token: TokenFlags,
}

/// Acquires a lock and leaves it until it expires or is released.
///
/// # Errors
///
/// If the lock cannot be acquired, or its token cannot be written; the lock is then released.
pub(crate) fn lock(flags: &LockFlags) -> Result<Exit, Failure> {
    let client = flags.cluster.client()?;
    let lines = Lines::start()?;
    to_the_end(async {
        let mut signals = Signals::take()?;
        let result = tokio::select! {
            biased;
            // Closing the client releases the lock, whose token nobody knows.
            exit = signals.end() => Ok(exit),
            result = acquire(flags, &client, &lines) => result,
        };
        client.close().await;
        result
    })
}

/// Gives a lock a new TTL.
///
/// # Errors
///
/// If the lock is not held with that token, or no majority of the nodes replies.
pub(crate) fn extend(flags: &ExtendFlags) -> Result<Exit, Failure> {
    let token = flags.token.read()?;
    let client = flags.cluster.client()?;
    to_the_end(async {
        let result = extend_by_token(flags, &client, token).await;
        client.close().await;
        result
    })
}

/// Releases a lock.
///
/// # Errors
///
/// If the lock is not held with that token, or no majority of the nodes replies.
pub(crate) fn release(flags: &ReleaseFlags) -> Result<Exit, Failure> {
    let token = match flags.force {
        true => None,
        false => Some(flags.token.read()?),
    };
    let client = flags.cluster.client()?;
    to_the_end(async {
        let result = match &token {
            Some(token) => release_by_token(flags, &client, token).await,
            None => force::release(&client, &flags.name).await,
        };
        client.close().await;
        result
    })
}

/// Runs work to its end on this thread.
fn to_the_end<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = serving::runtime()?;
    let result = runtime.block_on(work);
    // A resolver that hangs must not delay the exit.
    runtime.shutdown_background();
    result
}

async fn acquire(flags: &LockFlags, client: &Redlock, lines: &Lines) -> Result<Exit, Failure> {
    let name = flags.name.display();
    let waiting = |error: &redlock_client::Error| {
        lines.say(format!(
            "locknode: still waiting for the lock {name}: {error}"
        ));
    };
    let request = client.lock(flags.name.as_bytes());
    let guard = flags.acquisition.acquire(request, waiting).await;
    let guard = guard
        .map_err(|failure| Failure::new(failure.exit(), format!("the lock {name}: {failure}")))?;
    if let Err(failure) = hand_over(flags, &guard) {
        // A lock whose token nobody knows is of no use.
        let _ = guard.release().await;
        return Err(failure);
    }
    let _ = guard.leak();
    Ok(Exit::Success)
}

/// Writes the token to the file or to standard output.
fn hand_over(flags: &LockFlags, guard: &Guard) -> Result<(), Failure> {
    let token = guard.token();
    if let Some(path) = &flags.token_file {
        token_source::write(path, token)?;
    }
    match (flags.json, &flags.token_file) {
        (true, _) => {
            let validity = Validity::read(|| guard.validity());
            output::write(&describe(&flags.name, token, validity))
        }
        (false, None) => output::write(&format!("{token}\n")),
        (false, Some(_)) => return Ok(()),
    }
    .map_err(|failure| match failure.exit() {
        // A closed pipe is no error for other commands, but here the result would be lost.
        Exit::Success => Failure::unavailable("nobody reads the token; the lock was released"),
        _ => failure,
    })
}

async fn extend_by_token(
    flags: &ExtendFlags,
    client: &Redlock,
    token: Token,
) -> Result<Exit, Failure> {
    let request = client.adopt(flags.name.as_bytes(), token);
    match request.ttl(flags.ttl).try_acquire().await {
        Ok(Some(guard)) => {
            let validity = Validity::read(|| guard.validity());
            let token = guard.leak();
            if flags.json {
                output::write(&describe(&flags.name, &token, validity))?;
            }
            Ok(Exit::Success)
        }
        Ok(None) => Err(not_held(&flags.name)),
        Err(error) if matches!(error.kind(), ErrorKind::Lost | ErrorKind::Busy) => {
            Err(not_held(&flags.name))
        }
        Err(error) => Err(cluster::failure(&error, Exit::NotHeld)),
    }
}

async fn release_by_token(
    flags: &ReleaseFlags,
    client: &Redlock,
    token: &Token,
) -> Result<Exit, Failure> {
    let released = client.release(flags.name.as_bytes(), token).await;
    let released = released.map_err(|error| cluster::failure(&error, Exit::NotHeld))?;
    // The other nodes are not a majority.
    if released.not_held() > client.node_count() - client.quorum() {
        return Err(not_held(&flags.name));
    }
    // Nodes that never granted it may reply first; the others have the request by then.
    if released.is_free() {
        return Ok(Exit::Success);
    }
    Err(Failure::unavailable(format!(
        "the lock {}: {} of {} nodes are free of it, a majority is {} ({}); try again, or wait until it expires",
        flags.name.display(),
        released.confirmed() + released.not_held(),
        client.node_count(),
        client.quorum(),
        flags.cluster.answers(&released),
    )))
}

fn not_held(name: &OsString) -> Failure {
    Failure::new(
        Exit::NotHeld,
        format!(
            "the lock {} is not held with this token: it has expired, or was released",
            name.display()
        ),
    )
}

/// A lock as one JSON object.
fn describe(name: &OsString, token: &Token, validity: Validity) -> String {
    let object = Object::default()
        .text("name", &name.to_string_lossy())
        .text("token", &token.to_string());
    validity.describe(object).finish() + "\n"
}

const LOCK_EXAMPLES: &str = "\
Examples:
  export LOCKNODE_NODES=10.0.0.5:6379,10.0.0.6:6379,10.0.0.7:6379
  token=$(locknode lock deploy --ttl 5m) || exit
  printf %s \"$token\" | locknode release deploy -

  locknode lock deploy --wait 1m --token-file /run/deploy.token
  locknode release deploy --token-file /run/deploy.token

Exit codes: 0 the lock is acquired; 75 another client holds it, or clients kept splitting the votes
(or the code of -E); 69 too few nodes took part to decide; 128+N signal N came first; 64 wrong
usage; 70 internal error. After a failure the lock is not held.";

const EXTEND_EXAMPLES: &str = "\
Examples:
  printf %s \"$token\" | locknode extend deploy - --ttl 5m
  locknode extend deploy --token-file /run/deploy.token --ttl 5m

Exit codes: 0 extended; 1 the lock is not held with that token; 69 too few nodes took part, and the
lock is unchanged; 64 wrong usage; 70 internal error.";

const RELEASE_EXAMPLES: &str = "\
Examples:
  printf %s \"$token\" | locknode release deploy -
  locknode release deploy --token-file /run/deploy.token
  locknode release --force deploy

Exit codes: 0 a majority of the nodes is free of it; 1 the lock is not held with that token; 69 too
few nodes took part, and the lock expires by its TTL; 64 wrong usage; 70 internal error.";
