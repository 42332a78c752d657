//! The clients: finding and starting them.

use std::path::Path;
use std::process::Command;

use locknode_peers::server::Server;

use crate::cluster::Cluster;
use crate::options::Options;
use crate::run::{self, Load, Run};

/// A client program.
#[derive(Debug)]
pub(crate) struct Contestant {
    pub(crate) name: &'static str,
    /// The program, then its first arguments.
    words: Vec<String>,
    /// Where its packages are, for a client that finds them by a variable.
    packages: Option<String>,
}

/// How a client is started.
#[derive(Clone, Copy, Debug)]
enum Language {
    /// Built into this program.
    Rust,
    Node,
    Python,
}

/// The names of all clients.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|(name, _)| *name)
}

/// Ours first, then every peer whose packages are there.
pub(crate) fn find(options: &Options) -> Result<Vec<Contestant>, String> {
    let mut contestants = Vec::new();
    for &(name, language) in ALL.iter().filter(|(name, _)| options.wants(name)) {
        let mut packages = options.packages.iter().filter(|(of, _)| of == name);
        let directory = packages.next().map(|(_, directory)| directory.clone());
        let (words, packages) = match (language, directory) {
            (Language::Rust, _) => (
                vec![own_path()?, "client".to_owned(), name.to_owned()],
                None,
            ),
            (_, None) => {
                eprintln!("{name}: left out, because its packages are not installed");
                continue;
            }
            (Language::Node, Some(directory)) => (
                vec!["node".to_owned(), foreign(name, "mjs")],
                Some(directory),
            ),
            (Language::Python, Some(directory)) => {
                let python = format!("{directory}/bin/python");
                (vec![python, "-B".to_owned(), foreign(name, "py")], None)
            }
        };
        contestants.push(Contestant {
            name,
            words,
            packages,
        });
    }
    Ok(contestants)
}

impl Contestant {
    /// Whether this is the client under test.
    pub(crate) fn is_ours(&self) -> bool {
        self.name == OURS
    }

    /// The command line up to the client's own arguments, pinned to the second core.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new("taskset");
        command.args(["-c", "1"]).args(&self.words);
        if let Some(directory) = &self.packages {
            command.env("BENCH_PACKAGES", directory);
        }
        command
    }

    /// What it calls itself, with versions, after a short run that shows that it works at all.
    pub(crate) fn title(&self, options: &Options, server: &Server) -> Result<String, String> {
        let cluster = Cluster::start(server)?;
        let load = Load {
            seconds: options.seconds.min(PROBE_SECONDS),
            ..options.load(1)
        };
        match run::run(self, &cluster, &cluster.addresses(), load, || Ok(()))? {
            Run::Done(measured) => Ok(measured.title),
            Run::Disturbed(title) => Ok(title),
            Run::Stuck => Err(format!("{} does not come to an end", self.name)),
        }
    }
}

fn own_path() -> Result<String, String> {
    let path = std::env::current_exe().map_err(|error| format!("no path to myself: {error}"))?;
    Ok(path.to_string_lossy().into_owned())
}

fn foreign(name: &str, extension: &str) -> String {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("foreign");
    let path = directory.join(name).with_extension(extension);
    path.to_string_lossy().into_owned()
}

/// The client that the others are compared with.
pub(crate) const OURS: &str = "redlock-client";
/// The peer of the end-to-end comparison.
pub(crate) const RSLOCK: &str = "rslock";

const ALL: &[(&str, Language)] = &[
    (OURS, Language::Rust),
    ("redis-rs", Language::Rust),
    (RSLOCK, Language::Rust),
    ("node-redlock", Language::Node),
    ("redlock-py", Language::Python),
    ("pottery", Language::Python),
];
/// The title needs no figures.
const PROBE_SECONDS: f64 = 0.2;
