//! A pseudo-terminal, and programs that it controls.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::process::Command;

use rustix::fd::OwnedFd;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// Our end of a terminal.
#[derive(Debug)]
pub(crate) struct Terminal {
    ours: File,
}

impl Terminal {
    pub(crate) fn open() -> Self {
        let ours: OwnedFd = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&ours)
            .and_then(|()| unlockpt(&ours))
            .expect("a terminal");
        Self { ours: ours.into() }
    }

    /// The other end, as long as nobody's controlling terminal.
    pub(crate) fn theirs(&self) -> File {
        let name = ptsname(&self.ours, Vec::new()).expect("a name");
        let name = name.to_str().expect("UTF-8");
        let mut options = OpenOptions::new();
        take_no_terminal(&mut options);
        options
            .read(true)
            .write(true)
            .open(name)
            .expect("a terminal")
    }

    /// Types keys.
    pub(crate) fn type_keys(&mut self, keys: &str) {
        self.ours.write_all(keys.as_bytes()).expect("a terminal");
    }

    /// The same command in a session of its own, which this terminal controls.
    pub(crate) fn control(&self, command: &Command) -> Command {
        let mut controlled = Command::new("setsid");
        controlled
            .arg("--ctty")
            .arg(command.get_program())
            .args(command.get_args())
            .stdin(self.theirs());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => controlled.env(name, value),
                None => controlled.env_remove(name),
            };
        }
        controlled
    }
}

/// The test itself must not get the terminal, should it lead a session.
fn take_no_terminal(options: &mut OpenOptions) {
    use std::os::unix::fs::OpenOptionsExt as _;
    let flags = i32::try_from(rustix::fs::OFlags::NOCTTY.bits()).expect("a flag");
    options.custom_flags(flags);
}
