//! Every file of a node cut to every length and with every byte flipped: each start is refused with the name of the file, or
//! keeps what was told. `LOCKNODE_DAMAGE=all` tries all of it (`scripts/damage`), otherwise every so many bytes.

use locknode_engine::durable::{Durability, OpenErrorKind, StartReason};
use locknode_tests::faulty_disk::Image;

use crate::rig::{A_SET, Rig, seconds};

/// A node that is down, and how many bytes of each of its files mean something.
struct Left {
    name: &'static str,
    rig: Rig,
    image: Image,
}

/// How many starts ended in which way.
#[derive(Debug, Default)]
struct Count {
    refused: u32,
    whole: u32,
    dropped: u32,
    half: u32,
}

/// Crashed with a snapshot and a log of two incarnations, the last batch on its own.
fn crashed(name: &'static str, durability: Durability) -> Left {
    let mut rig = Rig::new();
    rig.sizes.segment = ZEROS;
    rig.settings.durability = durability;
    rig.first_start();
    rig.put(b"kept", None);
    rig.put(b"long", Some(3_000_000));
    rig.perform().unwrap();
    rig.stop().unwrap();
    rig.start();
    rig.hold(b"first");
    rig.remove(b"kept");
    rig.put(b"second", Some(2_000_000));
    rig.perform().unwrap();
    rig.restart();
    for key in [A_SET, b"last"] {
        rig.hold(key);
    }
    if durability == Durability::Long {
        rig.grant(b"short", seconds(50));
        rig.perform().unwrap();
    }
    // After this the state says nothing of the log any more.
    rig.hold(b"dropped");
    rig.may_drop = vec![(0, b"dropped".to_vec())];
    let image = rig.disk.snapshot();
    rig.kill();
    Left { name, rig, image }
}

/// Stopped in order: a snapshot with all locks, the clean marker.
fn stopped() -> Left {
    let mut rig = Rig::started();
    rig.put(b"long", None);
    rig.put(A_SET, None);
    rig.grant(b"short", seconds(50));
    rig.perform().unwrap();
    rig.stop().unwrap();
    let image = rig.disk.snapshot();
    rig.kill();
    Left {
        name: "stopped",
        rig,
        image,
    }
}

impl Left {
    /// Where the zeros behind a file's content begin.
    fn used(&self, file: &str) -> usize {
        let bytes = &self.image[file];
        let is_padded = file.starts_with("log-");
        let content = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
        // With what fills up the last batch.
        let content = content.next_multiple_of(8);
        if is_padded { content } else { bytes.len() }
    }

    /// Starts with a file that was changed. What must be so after a start is checked by the rig.
    fn check(
        &self,
        file: &str,
        what: &str,
        at: usize,
        count: &mut Count,
        change: &dyn Fn(&mut Vec<u8>),
    ) {
        let mut image = self.image.clone();
        change(image.get_mut(file).unwrap());
        let mut rig = self.rig.copy(&image);
        let case = format!("{}: {file} {what} {at}", self.name);
        match rig.try_start_checked() {
            Err(error) => {
                count.refused += 1;
                let is_named = error.file() == file || is_later_log(error.file(), file);
                assert!(is_named, "{case}: {error}");
                assert_eq!(error.kind(), OpenErrorKind::Damaged, "{case}");
                assert!(error.to_string().contains("restore the file"), "{error}");
                assert_eq!(rig.disk.snapshot(), image, "{case}");
            }
            Ok(start) => match start.reason {
                StartReason::DroppedBatch => count.dropped += 1,
                StartReason::DamagedState => count.half += 1,
                _ => count.whole += 1,
            },
        }
    }

    fn check_all(&self, stride: usize, zeros: usize) -> Count {
        let mut count = Count::default();
        let mut place = 1_u64;
        for (file, bytes) in &self.image {
            let used = self.used(file);
            for at in (0..used).step_by(stride) {
                self.check(file, "cut at", at, &mut count, &|bytes| bytes.truncate(at));
                for bits in [0x01, 0x80] {
                    self.check(file, "flipped at", at, &mut count, &|bytes| {
                        bytes[at] ^= bits
                    });
                }
            }
            let behind = bytes.len() - used;
            for _ in 0..if behind == 0 { 0 } else { zeros } {
                place = place
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let at = used + usize::try_from(place >> 33).unwrap() % behind;
                let bits = 1 << (place >> 61);
                self.check(file, "flipped at", at, &mut count, &|bytes| {
                    bytes[at] ^= bits
                });
                self.check(file, "cut at", at, &mut count, &|bytes| bytes.truncate(at));
            }
        }
        println!("{}: {count:?}", self.name);
        count
    }
}

/// A batch that is missing shows in the log after it.
fn is_later_log(named: &str, changed: &str) -> bool {
    named.starts_with("log-") && changed.starts_with("log-") && named >= changed
}

/// [S2] [S3] [L5] [L6]
#[test]
fn no_damage_makes_a_node_forget_what_it_told() {
    let is_all = std::env::var("LOCKNODE_DAMAGE").is_ok_and(|value| value == "all");
    let (stride, zeros) = if is_all { (1, 4096) } else { (13, 64) };
    for left in [
        crashed("crashed", Durability::Long),
        crashed("crashed, all logged", Durability::Always),
        stopped(),
    ] {
        let count = left.check_all(stride, zeros);
        assert!(count.refused > 20, "{}: {count:?}", left.name);
        assert!(count.half > 20, "{}: {count:?}", left.name);
        assert!(count.whole > 20, "{}: {count:?}", left.name);
        assert_eq!(count.dropped == 0, left.name == "stopped", "{count:?}");
    }
}

/// Bytes of a segment, most of them zeros.
const ZEROS: u64 = 16 << 10;
