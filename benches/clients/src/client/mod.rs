//! The process that is measured: one Rust client, alone on a single-threaded tokio runtime.
//!
//! Arguments: node addresses separated by commas, locks in flight, seconds. It warms up, prints `warm`, waits
//! for a line, acquires and releases locks for that long, and prints one line of JSON: the client with its versions, cycles, failures,
//! wall and CPU seconds, and percentiles of acquire. The clients of other languages in `foreign/` do the same.

mod fan_out;
mod load;
mod ours;
mod rslock;

use std::time::Duration;

use crate::client::fan_out::FanOut;
use crate::client::load::{Load, run};
use crate::client::ours::Ours;
use crate::client::rslock::Rslock;

/// The process that is measured.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Client {
    /// Runs one client; for this program itself
    #[command(hide = true)]
    Client {
        name: String,
        /// Separated by commas.
        addresses: String,
        in_flight: usize,
        seconds: f64,
    },
}

impl Client {
    /// Runs it.
    pub(crate) fn run(&self) -> Result<(), String> {
        let Self::Client {
            name,
            addresses,
            in_flight,
            seconds,
        } = self;
        let duration = Duration::try_from_secs_f64(*seconds).map_err(|error| error.to_string())?;
        let addresses: Vec<String> = addresses.split(',').map(str::to_owned).collect();
        let load = Load {
            in_flight: *in_flight,
            duration,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| format!("no runtime: {error}"))?;
        runtime.block_on(async {
            match name.as_str() {
                "redlock-client" => run(Ours::new(&addresses)?, load).await,
                "redis-rs" => run(FanOut::connect(&addresses).await, load).await,
                "rslock" => run(Rslock::new(&addresses), load).await,
                _ => Err(format!("no client '{name}'")),
            }
        })
    }
}

/// The version of a crate that this package's manifest pins.
fn pinned(name: &str) -> &'static str {
    let manifest = include_str!("../../Cargo.toml");
    let line = manifest
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "));
    let version = line.and_then(|line| line.split_once("\"=")?.1.split_once('"'));
    version.map_or("of unknown version", |(version, _)| version)
}

/// Of every lock; far longer than any of them is held.
const TTL: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peers_are_pinned_to_exact_versions() {
        for name in ["redis", "rslock"] {
            let is_version = pinned(name).starts_with(|first: char| first.is_ascii_digit());
            assert!(is_version, "{name} {}", pinned(name));
        }
    }
}
