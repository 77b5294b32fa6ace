//! Damage to a closed store: files of partitions or the head disappear or change. Their data
//! becomes a hole until its retention ends; all other data is intact. A damaged number of the
//! journal loses no data.

use std::fs;

use redb::{Database, ReadableTable, TableDefinition};

use crate::{history::History, stages};

/// The number of damaged bytes at the beginning of a file.
const HEADER_BYTES: usize = 8192;
const JOURNAL: &str = "journal.redb";
const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");

impl History {
    /// Damages a file of a partition, or the head, while the store is closed.
    pub(crate) fn damage(&mut self) {
        self.medium.lift();
        self.open = None;
        let is_head = self.rng.u8(0..4) == 0;
        let mut files = self.medium.files();
        let is_candidate = |file: &str| {
            if is_head { file == "head.redb" } else { file.starts_with("partitions/") }
        };
        files.retain(|file| is_candidate(file) && !file.contains(".new"));
        if files.is_empty() {
            return;
        }
        let file = files.swap_remove(self.rng.usize(0..files.len()));
        if self.rng.u8(0..3) == 0 {
            self.trace(|| format!("{file} vanishes"));
            self.tally.note(if is_head { "lost heads" } else { "lost files" });
            self.medium.erase(&file);
        } else {
            let (at, is_segment) = (self.rng.usize(..), file.ends_with(".sealed"));
            if is_segment && !stages::FLIPPED_BITS {
                return;
            }
            self.trace(|| format!("{file} is damaged"));
            self.tally.note(match () {
                () if is_segment => "flipped bits",
                () if is_head => "damaged heads",
                () => "damaged partitions",
            });
            self.medium.damage_file(&file, |bytes| {
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

    /// Damages a number of the journal, or its checksum, while the store is closed. When the number
    /// cannot be derived from other files, the start is refused, and the test restores the journal.
    pub(crate) fn damage_number(&mut self) {
        self.medium.lift();
        self.open = None;
        if !self.medium.files().iter().any(|file| file == JOURNAL) {
            return;
        }
        let (mut before, mut changed_key) = (Vec::new(), String::new());
        let (selector, bits) =
            (self.rng.usize(..), self.rng.choice([1, 1 << 40, u64::MAX]).unwrap());
        self.medium.damage_file(JOURNAL, |bytes| {
            before.clone_from(bytes);
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join(JOURNAL);
            fs::write(&path, &*bytes).unwrap();
            changed_key = change_number(&path, selector, bits);
            *bytes = fs::read(&path).unwrap();
        });
        self.trace(|| format!("the number {changed_key} is damaged"));
        self.tally.note("damaged numbers");
        match self.try_open() {
            Ok(opened) => self.continue_with(opened),
            Err(cause) => {
                assert!(cause.with_causes().contains("granary restore"), "{}", cause.with_causes());
                self.tally.note("numbers that no file contains");
                self.medium.damage_file(JOURNAL, |bytes| *bytes = before);
                self.restart();
            }
        }
    }
}

fn change_number(path: &std::path::Path, selector: usize, bits: u64) -> String {
    let db = Database::open(path).unwrap();
    let txn = db.begin_write().unwrap();
    let key = {
        let mut meta = txn.open_table(META).unwrap();
        let read = |entry: Result<(redb::AccessGuard<'_, &str>, redb::AccessGuard<'_, u64>), _>| {
            let (key, number) = entry.unwrap();
            (key.value().to_owned(), number.value())
        };
        let all: Vec<_> = meta.iter().unwrap().map(read).collect();
        let (key, number) = all[selector % all.len()].clone();
        meta.insert(&*key, number ^ bits).unwrap();
        key
    };
    txn.commit().unwrap();
    key
}
