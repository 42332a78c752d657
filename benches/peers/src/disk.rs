//! What a lock node leaves on its disk after many short locks.

use std::time::Instant;

use locknode_peers::directory::{self, Extent, extent};
use locknode_peers::server::Server;
use locknode_peers::setup::{Run, Setup};

use crate::load::Load;
use crate::options::Options;

/// Runs cycles, and prints bytes and syncs.
pub(crate) fn measure(options: &Options, ours: &Server) -> Result<(), String> {
    println!(
        "\ndisk: {} cycles, 50 connections, pipeline 16, TTL 30 s\n{:<34} {:>12} {:>12} {:>12} {:>12} {:>8} {:>9} {:>9}",
        options.disk_cycles,
        "kept",
        "bytes before",
        "most, seen",
        "bytes after",
        "on disk",
        "syncs",
        "seconds",
        "cycles/s"
    );
    for (name, setup) in [
        ("restart guard", Setup::Guard),
        ("every change, --durability always", Setup::Always),
    ] {
        row(options, ours, name, setup)?;
    }
    Ok(())
}

fn row(options: &Options, ours: &Server, name: &str, setup: Setup) -> Result<(), String> {
    let directory = directory::empty(&options.data_dir)?;
    let args = setup.args(ours.kind, directory.path(), Run::First, "60s");
    let running = ours.start_with(&args)?;
    let syncs = || {
        let syncs = running.info("restart", "disk_syncs");
        syncs.ok_or_else(|| format!("{name}: INFO tells no disk_syncs"))
    };
    let load = Load::new("cycle-evalsha", 16, "30s");
    let before = extent(directory.path());
    let (syncs_before, started) = (syncs()?, Instant::now());
    // In parts, so that a directory that grows and shrinks is seen at its largest.
    let mut most = Extent::default();
    for _ in 0..PARTS {
        let report = load.send(options, &running, options.disk_cycles.div_ceil(PARTS) * 2)?;
        report.ok_or_else(|| format!("{name}: the node lacks EVALSHA"))?;
        let now = extent(directory.path());
        if now.bytes > most.bytes {
            most = now;
        }
    }
    let (after, seconds) = (extent(directory.path()), started.elapsed().as_secs_f64());
    let cycles = u32::try_from(options.disk_cycles).map_or(f64::NAN, f64::from);
    println!(
        "{name:<34} {:>12} {:>12} {:>12} {:>12} {:>8.0} {seconds:>9.1} {:>9.0}",
        before.bytes,
        most.bytes,
        after.bytes,
        after.allocated,
        syncs()? - syncs_before,
        cycles / seconds,
    );
    Ok(())
}

const PARTS: u64 = 10;
