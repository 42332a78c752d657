//! Real nodes on files that were cut or flipped somewhere: each start is refused with the name of the file, or keeps what was
//! told. `LOCKNODE_DAMAGE=500` says how many (`scripts/damage`).

use std::fs;
use std::path::Path;

use rustix::process::Signal;

use crate::program::{Directory, ask, connect, serve, text_of};
use crate::restart::acquire;

/// What a node has left, the flags that it ran with, and the keys that it told held.
struct Left {
    directory: Directory,
    durability: &'static str,
}

/// How many starts ended in which way.
#[derive(Debug, Default)]
struct Count {
    refused: u32,
    served: u32,
    waited: u32,
}

/// One thing that is done to one file.
#[derive(Debug)]
struct Damage {
    file: String,
    at: usize,
    /// The bits that change; all that follows is cut off when there are none.
    bits: u8,
}

impl Left {
    /// A node that was stopped, crashed twice, and told of a lock each time.
    fn new(durability: &'static str) -> Self {
        let directory = Directory::new(&format!("damage-{durability}"));
        let path = directory.path_of("left");
        for (key, end, flag) in [
            ("kept", Signal::TERM, "--first-start"),
            ("first", Signal::KILL, ""),
            ("second", Signal::KILL, ""),
        ] {
            let mut node = serve(&format!("--dir {path} --durability {durability} {flag}"));
            let mut client = connect(node.address());
            acquire(&mut client, key, None);
            if end == Signal::KILL {
                acquire(&mut client, &format!("{key}-last"), Some(3_600_000));
            }
            drop(client);
            node.end(end);
        }
        Self {
            directory,
            durability,
        }
    }

    /// What the dice say is done: most of it where bytes mean something.
    fn damage(&self, dice: &mut impl FnMut(usize) -> usize) -> Damage {
        let mut names: Vec<String> = fs::read_dir(self.directory.path.join("left"))
            .expect("a directory")
            .map(|entry| text_of(&entry.expect("an entry").path()))
            .filter(|path| !path.ends_with("/lock"))
            .collect();
        names.sort();
        let file = names.swap_remove(dice(names.len()));
        let content = fs::read(&file).expect("read");
        let last = content.iter().rposition(|byte| *byte != 0);
        let used = last.map_or(0, |at| at + 1);
        let at = match dice(5) {
            0 => dice(content.len()),
            _ => dice(used),
        };
        let bits = match dice(3) {
            0 => 0,
            _ => 1 << dice(8),
        };
        let file = file.rsplit('/').next().expect("a name").to_owned();
        Damage { file, at, bits }
    }

    fn check(&self, damage: &Damage, count: &mut Count) {
        let path = self.directory.path.join("damaged");
        let _ = fs::remove_dir_all(&path);
        copy(&self.directory.path.join("left"), &path);
        let file = path.join(&damage.file);
        let mut content = fs::read(&file).expect("read");
        match damage.bits {
            0 => content.truncate(damage.at),
            bits => content[damage.at] ^= bits,
        }
        fs::write(&file, &content).expect("written");
        let flags = format!("--dir {} --durability {}", text_of(&path), self.durability);
        let mut node = serve(&flags);
        let Some(address) = node.address_or_end() else {
            count.refused += 1;
            let code = node.wait().code();
            let said = node.seen().join("\n");
            assert_eq!(code, Some(69), "{damage:?}: {said}");
            // A batch that is missing may show in the segment after it.
            let is_named = said.contains(&damage.file)
                || damage.file.starts_with("log-") && said.contains("/log-");
            let is_explained = is_named && said.contains("restore the file");
            assert!(is_explained, "{damage:?}: {said}");
            assert_eq!(fs::read(&file).expect("read"), content, "{damage:?}");
            return;
        };
        let mut client = connect(address);
        let is_waiting = ask(&mut client, "PING").starts_with("-LOADING");
        for key in ["kept", "first", "first-last", "second", "second-last"] {
            let answer = ask(&mut client, &format!("SET {key} other NX PX 1000"));
            let is_kept = answer == "$-1" || is_waiting && answer.starts_with("-LOADING");
            assert!(is_kept, "{damage:?}: {key}: {answer}\n{:?}", node.seen());
        }
        if is_waiting {
            count.waited += 1
        } else {
            count.served += 1
        }
        node.end(Signal::KILL);
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).expect("made");
    for entry in fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        fs::copy(entry.path(), to.join(entry.file_name())).expect("copied");
    }
}

/// [S2] [S3] [L5] [L6]
#[test]
fn no_damage_makes_a_node_grant_what_it_told_held() {
    let cases = std::env::var("LOCKNODE_DAMAGE").ok();
    let cases: u32 = cases.map_or(24, |cases| cases.parse().expect("a number"));
    let mut state = 1_u64;
    let mut dice = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).expect("31 bits") % below.max(1)
    };
    let mut count = Count::default();
    for (durability, cases) in [("long", cases / 2), ("always", cases - cases / 2)] {
        let left = Left::new(durability);
        for _ in 0..cases {
            left.check(&left.damage(&mut dice), &mut count);
        }
    }
    println!("{cases} starts: {count:?}");
    assert!(
        count.refused > cases / 8 && count.waited > cases / 8,
        "{count:?}"
    );
}
