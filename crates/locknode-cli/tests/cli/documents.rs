//! What README and the pages of docs/ show for a shell or for Python works as it says. Their Rust is run by
//! `locknode-testkit`, what is in other languages by `scripts/interop`, of which each such block is a part, and what is done
//! on machines (`sh on each machine`) by `scripts/five-machines`.
//!
//! A page is played from top to bottom, each block in a directory of its own. A lab that a page starts is where its later
//! commands go; a page that starts none has one all the same. Ports are free ones, and what takes long is shortened.

#![expect(
    clippy::print_stdout,
    reason = "who runs it wants to know what was left out"
)]

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;

use crate::cluster::Absent;
use crate::program::{Directory, Program, ask, clean, command, connect, ended, outcome, text_of};

/// Commands that are not run, by their beginning, and why.
const NOT_RUN: [(&str, &str); 5] = [
    ("cargo test --workspace", "this test is part of it"),
    (
        "UPDATE_SNAPSHOTS=1 cargo test",
        "it writes files of the repository; the same test runs without it",
    ),
    (
        "cargo run --profile dist -- bench",
        "it draws a file of the repository; a shorter one runs below",
    ),
    (
        "cargo run -p locknode-tests --example",
        "it builds another package",
    ),
    ("scripts/bench-", "it builds the profile that ships"),
];

/// The addresses of which the documents speak, up to the number of the node.
const NODES: &str = "10.0.0.";

/// The Redis of which the documents speak.
const REDIS: &str = "127.0.0.1:6379";

/// What takes long, and what is enough here.
const SHORTER: [(&str, &str); 4] = [
    (
        "--svg bench.svg",
        "--svg bench.svg --rounds 2 --duration 50ms",
    ),
    ("--for 20s", "--for 1s"),
    ("--seeds 0..10000", "--seeds 0..20"),
    ("--at-least 50s", "--at-least 50ms"),
];

/// Programs that others bring, and that the documents run under a lock.
const STAND_INS: [&str; 2] = ["job", "deploy.sh"];

#[test]
fn every_command_of_the_documents_works() {
    let mut not_run = BTreeSet::new();
    let mut count = 0;
    for path in pages() {
        let mut page = Page::new(&path);
        let text = fs::read_to_string(&path).expect("a page");
        for (number, (language, block)) in blocks(&text).into_iter().enumerate() {
            page.begin(number);
            match language {
                "sh" => page.shell(&block),
                "bash" => page.script(&block),
                "console" => page.session(&block),
                "python" if is_of_interop("py", &block) => {}
                "python" => page.python(&block),
                "go" | "java" | "php" | "lua" | "sql" => {
                    let ending = match language {
                        "lua" | "sql" => "py",
                        own => own,
                    };
                    let name = &page.name;
                    assert!(
                        is_of_interop(ending, &block),
                        "{name}: interop runs nothing like: {block}"
                    );
                }
                "rust" | "text" => continue,
                _ if language.starts_with("sh on ") => page.is_of_five_machines(),
                _ => panic!("{}: nobody runs {language}: {block}", page.name),
            }
            count += 1;
        }
        page.end();
        not_run.extend(page.not_run);
    }
    assert_eq!(not_run.len(), NOT_RUN.len(), "only {not_run:?} are there");
    assert!(count >= 14, "only {count} blocks");
}

/// README and the pages of docs/.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = fs::read_dir(root.join("docs")).expect("the documents");
    let docs = docs.map(|entry| entry.expect("a page").path());
    let docs = docs.filter(|path| path.extension().is_some_and(|it| it == "md"));
    let mut pages: Vec<PathBuf> = docs.chain([root.join("README.md")]).collect();
    pages.sort();
    pages
}

/// The blocks of a page, and their languages.
fn blocks(text: &str) -> Vec<(&str, String)> {
    let mut blocks: Vec<(&str, String)> = Vec::new();
    let mut is_inside = false;
    for line in text.lines() {
        match (line.strip_prefix("```"), is_inside) {
            (Some(language), false) => blocks.push((language, String::new())),
            (None, true) => {
                let (_, block) = blocks.last_mut().expect("a block that began");
                block.push_str(line);
                block.push('\n');
            }
            (None, false) => continue,
            (Some(_), true) => {}
        }
        is_inside ^= line.starts_with("```");
    }
    blocks
}

/// Whether the lines are in the text one after the other, however deep they are there.
fn has_lines(text: &str, lines: &str) -> bool {
    let trimmed =
        |text: &str| -> Vec<String> { text.lines().map(|line| line.trim().to_owned()).collect() };
    let lines = trimmed(lines);
    trimmed(text)
        .windows(lines.len())
        .any(|window| window == lines)
}

/// Whether the lines are in a program of that ending that interop runs.
fn is_of_interop(ending: &str, block: &str) -> bool {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let programs = fs::read_dir(root.join("scripts/interop.d/programs")).expect("programs");
    let mut programs = programs.map(|entry| entry.expect("a program").path());
    programs.any(|path| {
        path.extension().is_some_and(|it| it == ending)
            && has_lines(&fs::read_to_string(path).expect("a program"), block)
    })
}

/// A page that is being played.
struct Page {
    name: String,
    directory: Directory,
    /// Where the block is played.
    here: PathBuf,
    lab: Option<(Program, Vec<SocketAddr>)>,
    /// The node in the background of a session, and where it listens.
    node: Option<(Program, SocketAddr)>,
    /// The lines of shell that set variables.
    exports: String,
    not_run: Vec<&'static str>,
}

impl Page {
    fn new(path: &Path) -> Self {
        let name = path.file_stem().and_then(|name| name.to_str());
        let name = name.expect("a name").to_owned();
        let directory = Directory::new(&format!("documents-{name}"));
        Self {
            here: directory.path.clone(),
            name,
            directory,
            lab: None,
            node: None,
            exports: String::new(),
            not_run: Vec::new(),
        }
    }

    fn begin(&mut self, number: usize) {
        self.here = self.directory.path.join(number.to_string());
        fs::create_dir(&self.here).expect("a directory");
        for name in STAND_INS {
            let path = self.here.join(name);
            fs::write(&path, "#!/bin/sh\nexit 0\n").expect("a file");
            let is_runnable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            fs::set_permissions(path, is_runnable).expect("a file of ours");
        }
    }

    fn end(&mut self) {
        if let Some((mut lab, _)) = self.lab.take() {
            assert_eq!(lab.end(Signal::INT).code(), Some(0), "{}", self.name);
        }
    }

    /// Fails unless this page is one that is followed on machines.
    fn is_of_five_machines(&self) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let script = fs::read_to_string(root.join("scripts/five-machines")).expect("the script");
        let page = format!("\"{}.md\"", self.name);
        assert!(script.contains(&page), "scripts/five-machines skips {page}");
    }

    /// Starts the lab of a line.
    fn start_lab(&mut self, args: &[&str]) {
        self.end();
        let mut lab = command([&["lab", "--port", "0"], args].concat());
        lab.current_dir(&self.here);
        let mut lab = Program::start(lab);
        let nodes = [(); 5].map(|()| lab.address());
        self.lab = Some((lab, nodes.to_vec()));
    }

    /// Where the nodes of the lab are.
    fn nodes(&mut self) -> Vec<SocketAddr> {
        if self.lab.is_none() {
            self.start_lab(&[]);
        }
        let (_, nodes) = self.lab.as_ref().expect("a lab that was started");
        nodes.clone()
    }

    /// Plays a block line by line, without comments; those behind `redis-cli` say what it prints.
    fn shell(&mut self, block: &str) {
        for line in block.lines() {
            let (line, comment) = line.split_once(" #").unwrap_or((line, ""));
            let line = line.trim();
            let line = line.replace("cargo run --release --", "locknode");
            if let Some((begin, _)) = NOT_RUN.iter().find(|(begin, _)| line.starts_with(begin)) {
                self.not_run.push(begin);
                continue;
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                [] => {}
                ["locknode", "lab", ref args @ ..] if !args.contains(&"--chaos") => {
                    self.start_lab(args);
                }
                ["redis-cli", "-p", port, ref words @ ..] => {
                    let printed = self.redis_cli(port, &words.join(" "));
                    let want = comment.trim_start().split(':').next().unwrap_or_default();
                    let is_right = match want {
                        "OK" | "(nil)" => printed == want,
                        "1" => printed == "(integer) 1",
                        _ => !printed.starts_with("(error)"),
                    };
                    assert!(is_right, "{}: {line}: {printed}", self.name);
                }
                ["export", ..] => {
                    self.exports.extend([line.as_str(), "\n"]);
                }
                _ => self.run(&line),
            }
        }
    }

    /// A line with addresses of the lab, and nothing in it that takes long.
    fn own(&mut self, line: &str) -> String {
        let nodes = self.nodes();
        let line = line.replace(REDIS, &nodes[0].to_string());
        let line = (1..).zip(&nodes).fold(line, |line, (number, node)| {
            line.replace(&format!("{NODES}{number}"), &node.to_string())
        });
        SHORTER
            .iter()
            .fold(line, |line, (shown, own)| line.replace(shown, own))
    }

    /// Runs a line of shell.
    fn run(&mut self, line: &str) {
        // What was exported is about the lab that runs now.
        let exported = self.exports.clone();
        let lines = format!("{}{}\n", self.own(&exported), self.own(line));
        let binary = Path::new(env!("CARGO_BIN_EXE_locknode"));
        let path = format!(
            "{}:{}:{}",
            text_of(binary.parent().expect("a directory")),
            text_of(&self.here),
            std::env::var("PATH").unwrap_or_default()
        );
        let nodes: Vec<String> = self.nodes().iter().map(SocketAddr::to_string).collect();
        let mut shell = Command::new("sh");
        clean(&mut shell);
        // A page that is a script says where its nodes are.
        shell
            .env("PATH", path)
            .env("LOCKNODE_NODES", nodes.join(","));
        shell.current_dir(&self.here).args(["-euc", &lines]);
        let (code, out, err) = outcome(&shell.output().expect("a shell"));
        // Nodes that forget need luck to give a lock away twice within a second.
        let is_luck = line.contains("--restart-guard off") && code == Some(1);
        let name = &self.name;
        assert!(
            code == Some(0) || is_luck,
            "{name}: {line}: {code:?}\n{out}{err}"
        );
    }

    /// Runs a block as one script, which starts its own node at the port of TLS.
    fn script(&mut self, block: &str) {
        let absent = Absent::new();
        let address = absent.nodes(1);
        let (_, port) = address.split_once(':').expect("an address");
        let block = block.replace("6380", port);
        drop(absent);
        self.run(&format!("trap 'kill $! || :' EXIT\n{block}"));
    }

    /// Sends a command to the node of that port, and returns what `redis-cli` prints on a terminal.
    fn redis_cli(&mut self, port: &str, line: &str) -> String {
        let place = |port: &str| port.parse::<usize>().ok()?.checked_sub(7101);
        let (address, line) = match &self.node {
            Some((_, address)) => (*address, line.to_owned()),
            None => {
                let nodes = self.nodes();
                let node = |port| place(port).and_then(|place| nodes.get(place));
                let address = *node(port).expect("a port of the lab");
                // FAULT RESTART NODE 7103.
                let words = line.split(' ').map(|word| match node(word) {
                    Some(address) => address.port().to_string(),
                    None => word.to_owned(),
                });
                (address, words.collect::<Vec<_>>().join(" "))
            }
        };
        let reply = ask(&mut connect(address), &line);
        match (reply.split_at(1), reply.as_str()) {
            (_, "$-1") => "(nil)".to_owned(),
            ((":", number), _) => format!("(integer) {number}"),
            (("-", error), _) => format!("(error) {error}"),
            ((_, text), _) => text.to_owned(),
        }
    }

    /// Plays a session: commands behind `$`, and what is printed after each, in which only figures may differ.
    fn session(&mut self, block: &str) {
        let waits = block.contains("sleep");
        let mut printed: Option<String> = None;
        for line in block.lines() {
            let Some(line) = line.strip_prefix("$ ") else {
                let found = match (printed.take(), &mut self.node) {
                    (Some(printed), _) => printed,
                    (None, Some((node, _))) => {
                        let words = line.split(|c: char| c.is_ascii_digit());
                        node.line_ever_with(words.max_by_key(|part| part.len()).unwrap_or(line))
                    }
                    (None, None) => panic!("{}: nobody prints {line}", self.name),
                };
                let (found, shown) = (without_figures(&found), without_figures(line));
                assert_eq!(found, shown, "{}", self.name);
                continue;
            };
            let line = line.split(" #").next().unwrap_or_default().trim();
            // A wait for the end of the lock becomes shorter.
            let ttl = if waits { "px 3000" } else { "px 30000" };
            let line = line.replace("px 30000", ttl);
            let line = match (line.split_once("; "), &mut self.node) {
                (Some((sleep, line)), Some((node, _))) if sleep.starts_with("sleep ") => {
                    node.line_with("the quarantine is over");
                    line.to_owned()
                }
                _ => line,
            };
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                ["locknode", ref args @ .., "&"] => {
                    let mut node = command(args.iter().map(|arg| arg.replace("7101", "0")));
                    node.current_dir(&self.here);
                    let mut node = Program::start(node);
                    let address = node.address();
                    self.node = Some((node, address));
                }
                ["redis-cli", "-p", port, ref words @ ..] => {
                    printed = Some(self.redis_cli(port, &words.join(" ")));
                }
                ["kill", ref signal @ .., "%1"] => {
                    let (node, _) = self.node.as_mut().expect("a node");
                    node.end(match signal {
                        ["-9"] => Signal::KILL,
                        _ => Signal::TERM,
                    });
                }
                _ => panic!("{}: nobody runs {line}", self.name),
            }
        }
        self.node = None;
    }

    /// Runs a block against the first node of the lab, where there is a `redis` to import.
    fn python(&mut self, block: &str) {
        let has_redis = Command::new("python3")
            .args(["-c", "import redis"])
            .output();
        if !has_redis.is_ok_and(|output| output.status.success()) {
            println!(
                "{}: no Python with redis-py here; scripts/interop brings one",
                self.name
            );
            return;
        }
        let port = self.nodes().first().map_or(0, SocketAddr::port);
        let text = block.replace("port=7101", &format!("port={port}"));
        let mut python = Command::new("python3");
        ended(0, &python.args(["-c", &text]).output().expect("Python"));
    }
}

/// A line with one sign for each figure.
fn without_figures(line: &str) -> String {
    let mut text = String::new();
    for c in line.chars() {
        match (c, text.ends_with('N')) {
            ('0'..='9', true) => {}
            ('.', true) => {}
            ('0'..='9', false) => text.push('N'),
            _ => text.push(c),
        }
    }
    text
}
