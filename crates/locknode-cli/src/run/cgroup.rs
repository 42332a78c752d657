//! A control group of the command's own, where the system lets us make one: root, a container with its own hierarchy,
//! or a service to which systemd delegates. Its kernel kills all members at once, also those that became another
//! user's or were hidden from us, and however fast they fork.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// A control group (v2) below our own, for one command.
#[derive(Debug)]
pub(super) struct Cgroup {
    path: PathBuf,
}

impl Cgroup {
    /// Makes one, if that is possible.
    pub(super) fn make() -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let ours = fs::read_to_string("/proc/self/cgroup").ok()?;
        let parent = own_directory(&mounts, &ours)?;
        clear_stale(&parent);
        let path = parent.join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir(&path).ok()?;
        let cgroup = Self { path };
        // Older than Linux 5.14: it would be of no use.
        cgroup.file(KILL).exists().then_some(cgroup)
    }

    /// What [`enter`] needs.
    #[cfg_attr(
        not(target_os = "linux"),
        expect(dead_code, reason = "control groups are Linux's")
    )]
    pub(super) fn path(&self) -> &OsStr {
        self.path.as_os_str()
    }

    /// Kills all members.
    pub(super) fn kill(&self) {
        let _ = fs::write(self.file(KILL), "1");
    }

    /// Whether a member is alive.
    pub(super) fn is_populated(&self) -> bool {
        let events = fs::read_to_string(self.file("cgroup.events"));
        events.is_ok_and(|events| events.lines().any(|line| line == "populated 1"))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

/// Members that are left go back to where they would have been.
impl Drop for Cgroup {
    fn drop(&mut self) {
        let back = self.path.parent().map(|parent| parent.join(MEMBERS));
        for _ in 0..ROUNDS_MAX {
            let members = fs::read_to_string(self.file(MEMBERS)).unwrap_or_default();
            for member in members.lines() {
                let _ = back.as_ref().map(|back| fs::write(back, member));
            }
            if fs::remove_dir(&self.path).is_ok() {
                return;
            }
        }
    }
}

/// Moves this process to a control group, named by its path. Failing that, it stays where it is.
#[cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, reason = "control groups are Linux's")
)]
pub(super) fn enter(path: &OsStr) {
    if !path.is_empty() {
        let _ = fs::write(Path::new(path).join(MEMBERS), "0");
    }
}

/// Removes what runs left that were killed. A directory with members cannot be removed, and one without belongs to a
/// run that is just starting if its process is there.
fn clear_stale(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let id = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        if id.is_some_and(|id| !Path::new("/proc").join(id).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Where our own control group is, by `/proc/self/mountinfo` and `/proc/self/cgroup`.
fn own_directory(mounts: &str, ours: &str) -> Option<PathBuf> {
    let own = ours.lines().find_map(|line| line.strip_prefix("0::"))?;
    mounts.lines().find_map(|line| {
        let (mount, system) = line.split_once(" - ")?;
        if system.split(' ').next() != Some("cgroup2") {
            return None;
        }
        let mut fields = mount.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        let below = match root {
            "/" => own,
            root => own.strip_prefix(root)?,
        };
        // Escaped characters, or a part of the hierarchy that is not ours to see.
        let is_plain = !point.contains('\\') && !below.contains("..");
        is_plain.then(|| Path::new(point).join(below.trim_start_matches('/')))
    })
}

const PREFIX: &str = "locknode-run-";

const KILL: &str = "cgroup.kill";

const MEMBERS: &str = "cgroup.procs";

/// Members may fork while they are moved.
const ROUNDS_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_group_is_found_below_the_mount() {
        let mount = |root: &str, point: &str| {
            format!(
                "22 1 0:20 / /proc rw - proc proc rw\n30 23 0:26 {root} {point} rw shared:4 - cgroup2 cgroup2 rw\n"
            )
        };
        for (root, point, ours, expected) in [
            ("/", "/sys/fs/cgroup", "0::/\n", Some("/sys/fs/cgroup/")),
            ("/", "/cg", "1:name=systemd:/x\n0::/a/b\n", Some("/cg/a/b")),
            ("/docker/1", "/cg", "0::/docker/1/a\n", Some("/cg/a")),
            ("/docker/1", "/cg", "0::/other\n", None),
            ("/", "/cg", "0::/../x\n", None),
            ("/", "/c\\040g", "0::/\n", None),
            ("/", "/cg", "4:memory:/\n", None),
        ] {
            let found = own_directory(&mount(root, point), ours);
            assert_eq!(found, expected.map(PathBuf::from), "{root} {point} {ours}");
        }
        assert_eq!(own_directory("", "0::/\n"), None);
    }
}
