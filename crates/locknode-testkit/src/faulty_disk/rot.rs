//! What befalls files at rest: bits that flip, and ends that are missing.

use super::FaultyDisk;

impl FaultyDisk {
    /// Flips a bit of a file, mostly in the part of it that is used. `pick` chooses a number below the one that it is given.
    pub fn rot(&self, pick: &mut dyn FnMut(u64) -> u64) {
        self.damage(pick, |content, at, bit| {
            if let Some(byte) = content.get_mut(at) {
                *byte ^= 1 << (bit & 7);
            }
        });
    }

    /// Cuts a file off, mostly in the part of it that is used.
    pub fn cut(&self, pick: &mut dyn FnMut(u64) -> u64) {
        self.damage(pick, |content, at, _| content.truncate(at));
        self.lock().was_cut = true;
    }

    fn damage(
        &self,
        pick: &mut dyn FnMut(u64) -> u64,
        how: impl FnOnce(&mut Vec<u8>, usize, usize),
    ) {
        let mut image = self.snapshot();
        let place = index(pick, image.len());
        let Some(content) = image.values_mut().nth(place) else {
            return;
        };
        let used = content.iter().rposition(|byte| *byte != 0);
        let used = used.map_or(content.len(), |last| last + 1);
        let len = match pick(4) {
            0 => content.len(),
            _ => used,
        };
        let (at, bit) = (index(pick, len), index(pick, 8));
        how(content, at, bit);
        self.restore(&image);
    }
}

fn index(pick: &mut dyn FnMut(u64) -> u64, len: usize) -> usize {
    let len = u64::try_from(len).unwrap_or(u64::MAX);
    usize::try_from(pick(len.max(1))).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use crate::faulty_disk::{FaultyDisk, keep_none};

    #[test]
    fn a_bit_flips_and_an_end_is_missing_for_good() {
        let disk = FaultyDisk::new();
        disk.put("a", b"abcd\0\0\0\0");
        let mut last = |below: u64| below - 1;
        disk.rot(&mut last);
        disk.crash(&mut keep_none);
        assert_eq!(disk.snapshot()["a"], b"abc\xe4\0\0\0\0");
        disk.cut(&mut last);
        disk.crash(&mut keep_none);
        assert_eq!(disk.snapshot()["a"], b"abc");
        FaultyDisk::new().rot(&mut last);
    }
}
