//! Starting the program and talking to it. Nothing here waits for a fixed time: lines are awaited, with a deadline.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::Once;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tokio::signal::unix::SignalKind;

/// Long enough for a debug build on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A running program; killed when dropped.
#[derive(Debug)]
pub(crate) struct Program {
    child: Child,
    lines: Receiver<String>,
    /// All lines so far, to show when a test fails.
    seen: Vec<String>,
}

/// A directory that is removed when dropped.
#[derive(Debug)]
pub(crate) struct Directory {
    pub(crate) path: PathBuf,
}

/// Lets programs that are started from here begin with the default of every signal, whatever these tests inherited: a
/// program that a script starts in the background finds SIGINT ignored. A signal that has a handler here has the
/// default there, and nothing else would be done about one that is ignored.
fn reset_signals() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let ignored = ignored.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = runtime.expect("a runtime");
        let _entered = runtime.enter();
        for number in RESET {
            if ignored.is_some_and(|bits| bits & (1 << (number - 1)) != 0) {
                let handler = tokio::signal::unix::signal(SignalKind::from_raw(number));
                drop(handler.expect("a handler"));
            }
        }
    });
}

/// The signals of which a test depends on the default: what ends or stops a program.
const RESET: [i32; 7] = [
    Signal::HUP.as_raw(),
    Signal::INT.as_raw(),
    Signal::QUIT.as_raw(),
    Signal::TERM.as_raw(),
    Signal::USR1.as_raw(),
    Signal::USR2.as_raw(),
    Signal::TSTP.as_raw(),
];

/// The program with these arguments, the default of every signal, and none of our variables in its environment.
pub(crate) fn command(args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_locknode"));
    clean(&mut command);
    command.args(args).stdin(Stdio::null());
    command
}

/// Gives a program the default of every signal and none of our variables.
pub(crate) fn clean(command: &mut Command) {
    reset_signals();
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("LOCKNODE_") {
            command.env_remove(name);
        }
    }
    // A lab that is killed leaves its temporary directories.
    command.env("TMPDIR", env!("CARGO_TARGET_TMPDIR"));
}

/// Runs the program to its end.
pub(crate) fn run(args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Output {
    command(args).output().expect("the program starts")
}

/// The words of a command line; what is in single quotes is one word.
#[cfg(any(feature = "lab", feature = "sim"))]
pub(crate) fn words(line: &str) -> Vec<&str> {
    let parts = line.split('\'').enumerate();
    let words = parts.flat_map(|(n, part)| match n % 2 {
        0 => part.split_whitespace().collect(),
        _ => vec![part],
    });
    words.collect()
}

/// The outcome of a run with the words of a line.
#[cfg(any(feature = "lab", feature = "sim"))]
pub(crate) fn outcome_of(line: &str) -> (Option<i32>, String, String) {
    outcome(&run(words(line)))
}

/// The exit code, standard output and standard error of a finished run.
pub(crate) fn outcome(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

/// Runs the program to an end with that exit code: standard output and standard error.
#[track_caller]
pub(crate) fn ends(
    code: i32,
    args: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> (String, String) {
    let args = args.into_iter().map(|arg| arg.as_ref().to_owned());
    let args: Vec<OsString> = args.collect();
    let (found, out, err) = outcome(&run(&args));
    assert_eq!(found, Some(code), "{args:?}: {out}{err}");
    (out, err)
}

/// The same for a finished run.
#[track_caller]
pub(crate) fn ended(code: i32, output: &Output) -> (String, String) {
    let (found, out, err) = outcome(output);
    assert_eq!(found, Some(code), "{out}{err}");
    (out, err)
}

/// A node on a free port with these flags.
pub(crate) fn serve(flags: &str) -> Program {
    Program::start(command(
        format!("serve --port 0 {flags}").split_whitespace(),
    ))
}

/// Checks that a text has all of these in it.
#[track_caller]
pub(crate) fn shows(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} in {text}");
    }
}

impl Program {
    /// Starts the program and follows both of its outputs.
    pub(crate) fn start(mut command: Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let (sender, lines) = channel();
        follow(child.stdout.take(), sender.clone());
        follow(child.stderr.take(), sender);
        Self {
            child,
            lines,
            seen: Vec::new(),
        }
    }

    /// Starts the program with the words of a line.
    #[cfg(feature = "lab")]
    pub(crate) fn of(line: &str) -> Self {
        Self::start(command(words(line)))
    }

    /// Waits for a line with that text in it.
    pub(crate) fn line_with(&mut self, part: &str) -> String {
        self.line_or_end(part).unwrap_or_else(|| {
            panic!("it ended without {part:?}; there were {:#?}", self.seen);
        })
    }

    /// The same; `None` when the program ends before.
    fn line_or_end(&mut self, part: &str) -> Option<String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = match self.lines.recv_timeout(left) {
                Ok(line) => line,
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {
                    panic!("no line with {part:?}; there were {:#?}", self.seen)
                }
            };
            self.seen.push(line.clone());
            if line.contains(part) {
                return Some(line);
            }
        }
    }

    /// As [`Self::line_with`], also content with a line that came before: the two outputs are not in order.
    #[cfg(feature = "default")]
    pub(crate) fn line_ever_with(&mut self, part: &str) -> String {
        match self.seen.iter().find(|line| line.contains(part)) {
            Some(line) => line.clone(),
            None => self.line_with(part),
        }
    }

    /// Waits for a TCP address that the program listens on.
    pub(crate) fn address(&mut self) -> SocketAddr {
        self.address_or_end().expect("an address")
    }

    /// As [`Self::address`]; `None` when the program ends before.
    pub(crate) fn address_or_end(&mut self) -> Option<SocketAddr> {
        let line = self.line_or_end("listening on ")?;
        let (_, address) = line.split_once("listening on ").expect("just found");
        Some(address.parse().expect("an address"))
    }

    /// The number of the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// All lines that were waited for or passed over.
    pub(crate) fn seen(&self) -> &[String] {
        &self.seen
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id()).expect("a process id");
        let id = rustix::process::Pid::from_raw(id).expect("a process id");
        rustix::process::kill_process(id, signal).expect("the program runs");
    }

    /// How many lines so far have this text in them.
    pub(crate) fn count(&self, part: &str) -> usize {
        self.seen.iter().filter(|line| line.contains(part)).count()
    }

    /// Sends a signal that ends the program, and waits for the end.
    pub(crate) fn end(&mut self, signal: Signal) -> ExitStatus {
        self.signal(signal);
        self.wait()
    }

    /// Waits for the end, which must be with that exit code.
    #[track_caller]
    pub(crate) fn ends(&mut self, code: i32) {
        let found = self.wait().code();
        assert_eq!(found, Some(code), "{:#?}", self.seen);
    }

    /// Waits for the end.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        // The outputs close when the program ends; only then is waiting for it sure to be short.
        let deadline = Instant::now() + PATIENCE;
        let left = || deadline.saturating_duration_since(Instant::now());
        while let Ok(line) = self.lines.recv_timeout(left()) {
            self.seen.push(line);
        }
        assert!(
            Instant::now() < deadline,
            "the program did not end; there were {:#?}",
            self.seen
        );
        self.child.wait().expect("the program ended")
    }
}

/// Sends the lines of an output, as long as somebody takes them.
fn follow(output: Option<impl Read + Send + 'static>, lines: Sender<String>) {
    let output = BufReader::new(output.expect("a pipe"));
    std::thread::spawn(move || {
        let mut all = output.lines().map_while(Result::ok);
        all.all(|line| lines.send(line).is_ok())
    });
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Directory {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("locknode-cli-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory");
        Self { path }
    }

    /// The path of something in it.
    pub(crate) fn path_of(&self, name: &str) -> String {
        text_of(&self.path.join(name))
    }

    /// Writes a file and returns its path.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.path_of(name);
        std::fs::write(&path, text).expect("a file");
        path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

pub(crate) fn text_of(path: &Path) -> String {
    path.to_str().expect("UTF-8").to_owned()
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect_timeout(&address, PATIENCE).expect("somebody listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream
}

/// Sends an inline command and returns the first line of the reply.
pub(crate) fn ask(stream: &mut (impl Read + Write), command: &str) -> String {
    stream
        .write_all(format!("{command}\r\n").as_bytes())
        .expect("sent");
    let mut line = Vec::new();
    let mut byte = [0];
    while !line.ends_with(b"\r\n") {
        stream.read_exact(&mut byte).expect("a reply");
        line.extend_from_slice(&byte);
    }
    String::from_utf8_lossy(&line).trim_end().to_owned()
}
