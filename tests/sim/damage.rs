//! Damage behind the store's back: files of partitions vanish, or are not as they were written. What
//! is lost with them is a hole, as long as the partition is kept; everything else is as it was.

use crate::{history::History, stages};

/// What the system reads of a file first.
const HEADER_BYTES: usize = 8192;

impl History {
    /// Damages a file of a partition while the store is closed.
    pub(crate) fn damage(&mut self) {
        self.medium.lift();
        self.open = None;
        let mut files = self.medium.files();
        files.retain(|file| file.starts_with("partitions/") && !file.contains(".new"));
        if files.is_empty() {
            return;
        }
        let file = files.swap_remove(self.rng.usize(0..files.len()));
        if self.rng.u8(0..3) == 0 {
            self.tell(|| format!("{file} vanishes"));
            self.tally.note("lost files");
            self.medium.erase(&file);
        } else {
            let (at, is_segment) = (self.rng.usize(..), file.ends_with(".sealed"));
            if is_segment && !stages::FLIPPED_BITS {
                return;
            }
            self.tell(|| format!("{file} is damaged"));
            self.tally.note(if is_segment { "flipped bits" } else { "damaged partitions" });
            self.medium.spoil(&file, |bytes| {
                let count = bytes.len();
                if is_segment {
                    bytes[at % count] ^= 1 << (at / count % 8);
                } else {
                    bytes[..HEADER_BYTES.min(count)].fill(7);
                }
            });
        }
        self.is_damaged = true;
        self.restart();
    }
}
