//! The head, `head.redb`: cells that checkpoints have moved out of memory and that are not in
//! documents yet.
//!
//! A document is written when its period is over. Until then, checkpoints merge its cells into the
//! head, where neighbouring series share a row; this costs a fraction of patching each document.
//! For each granularity, the head stores the last journal record whose cells it contains. Must
//! never know: which cells belong in documents; the checkpoint decides.

pub(crate) mod cache;
mod cell;
mod columns;
mod elapsed;
pub(crate) mod fuzzing;
mod histograms;
mod keys;
mod lost;
mod moments;
mod opening;
mod reader;
pub(crate) mod row;
#[cfg(test)]
mod tests;
mod writer;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use parking_lot::RwLock;

pub(crate) use columns::{COLUMN_SLOTS_MAX, ColumnUpdate, HeadColumn, SlotVersion};
pub(crate) use keys::{HISTOGRAMS_PREFIX, ROWS_PREFIX};
pub(crate) use reader::HeadReader;

use super::{
    error::StoreError,
    file::{
        checksum::checksum,
        damage::Damage,
        database::{DatabaseFile, FileOptions},
        holes::{Holes, stretch_key},
        medium::Medium,
        names::HEAD_FILE,
    },
    journal::{
        in_head::{InHead, Presumed},
        register::Register,
    },
};
use crate::model::{Granularity, GranularityIndex, UnixMillis};
use cache::RowCache;
use keys::{META, check_key, fail, histograms_name, rows_name, rows_table, through, through_key};
pub(crate) use opening::records_of;
use opening::{Opened, open_whole, presumed, read_slots};
use writer::HeadWriter;

const OPTIONS: FileOptions = FileOptions { cache_bytes: 8 << 20, quick_repair: true };
/// The minimum number of bytes that are allocated after the end of the file.
const SLACK_BYTES_MIN: u64 = 1 << 20;

/// The open head.
#[derive(Debug)]
pub(crate) struct Head {
    medium: Arc<dyn Medium>,
    /// Names of the granularities, finest first.
    names: Vec<String>,
    /// Slot widths of the granularities.
    widths_ms: Vec<i64>,
    /// The keys of the granularities' stretches.
    keys: Vec<i64>,
    /// The number of granularities that accept samples; they precede the others.
    living: usize,
    register: Arc<Register>,
    file: RwLock<Arc<DatabaseFile>>,
    /// Keys of damaged rows, and the holes of damaged rows that were replaced, by granularity.
    damage: Vec<Arc<Damage>>,
    /// Keys of damaged rows of histograms, by granularity. The rows of cells with the same keys may
    /// be sound.
    histogram_damage: Vec<Arc<Damage>>,
    /// The slots that count as lost when a head is lost and the journal's row about them is
    /// damaged, by granularity.
    presumed: Vec<Presumed>,
    /// The slots that were lost with heads, by granularity.
    lost: RwLock<Vec<Holes>>,
    cache: Arc<RowCache>,
    /// True when the file may have tables of histograms. Set before the first of them is created.
    has_histograms: AtomicBool,
}

impl Head {
    /// Opens the head, or creates it when it is missing or damaged; a damaged head is set aside.
    /// The first `living` granularities accept samples; `ran_until` is the end of the last run.
    pub(crate) fn open(
        medium: Arc<dyn Medium>,
        granularities: &[Granularity],
        living: usize,
        register: Arc<Register>,
        ran_until: UnixMillis,
    ) -> Result<Self, StoreError> {
        let names: Vec<_> =
            granularities.iter().map(|granularity| granularity.name.clone()).collect();
        let widths_ms: Vec<_> =
            granularities.iter().map(|granularity| granularity.width_ms).collect();
        let keys = granularities.iter().map(|level| stretch_key(&level.name, level.width_ms));
        let keys = keys.collect();
        let presumed =
            granularities.iter().map(|granularity| presumed(granularity, ran_until)).collect();
        let open = || open_whole(&medium, &names, &widths_ms);
        let Opened { file, damage, has_histograms } = match open() {
            Err(fault) if fault.is_damage_of(HEAD_FILE) => {
                register.set_aside(HEAD_FILE, &fault)?;
                open()?
            }
            outcome => outcome?,
        };
        register.note(HEAD_FILE)?;
        let (file, lost) = (RwLock::new(Arc::new(file)), RwLock::default());
        let cache = Arc::new(RowCache::new(names.len()));
        let histogram_damage = names.iter().map(|_| Arc::default()).collect();
        let this = Self {
            medium,
            names,
            widths_ms,
            keys,
            living,
            register,
            file,
            damage,
            histogram_damage,
            presumed,
            lost,
            cache,
            has_histograms: AtomicBool::new(has_histograms),
        };
        *this.lost.write() = this.find_lost()?;
        Ok(this)
    }

    /// Returns the bytes of the head on the medium.
    pub(crate) fn bytes(&self) -> u64 {
        self.medium.allocated_bytes(HEAD_FILE).unwrap_or(0)
    }

    /// Allocates the blocks of the file, and an eighth of its size after its end.
    pub(crate) fn reserve(&self) -> Result<(), StoreError> {
        let beyond = (self.bytes() / 8).max(SLACK_BYTES_MIN);
        self.file.read().allocate(beyond, u64::MAX)
    }

    /// Returns the cache of rows and columns.
    pub(crate) fn cache(&self) -> &RowCache {
        &self.cache
    }

    /// Returns the slots whose cells are in the head.
    pub(crate) fn in_head(&self) -> Result<Vec<InHead>, StoreError> {
        let file = self.file.read().clone();
        file.guard("read", || read_slots(&file, &self.names, &self.widths_ms))
    }

    /// Returns a consistent view of one granularity.
    pub(crate) fn read(&self, index: GranularityIndex) -> Result<HeadReader, StoreError> {
        let file = self.file.read().clone();
        let txn = file.read()?;
        let name = &self.names[index.0];
        let (through, rows) = file.guard("read", || {
            let through = through(&txn, name)?.unwrap_or(0);
            let table = rows_name(name);
            let rows = txn.open_table(rows_table(&table)).map_err(fail("read"))?;
            Ok((through, rows))
        })?;
        let (damage, cache) = (self.damage[index.0].clone(), self.cache.clone());
        let histogram_damage = self.histogram_damage[index.0].clone();
        // The flag is read after the transaction began: if it is not set, the file had no table.
        let has_histograms = self.has_histograms.load(Ordering::Acquire);
        let histograms_name = histograms_name(name);
        let granularity = index.0;
        Ok(HeadReader {
            file,
            damage,
            histogram_damage,
            through,
            rows,
            cache,
            granularity,
            txn,
            has_histograms,
            histograms_name,
        })
    }

    /// Reads all rows of a granularity, slot by slot, and notes damaged rows. Returns the number of
    /// rows that were newly found damaged. `go_on` receives the number of bytes read since its last
    /// call, and returns false to stop.
    pub(crate) fn check_rows(
        &self,
        index: GranularityIndex,
        go_on: &dyn Fn(u64) -> bool,
    ) -> Result<u64, StoreError> {
        let damage = [&self.damage, &self.histogram_damage].map(|all| all[index.0].clone());
        let count = || damage.iter().map(|damage| damage.count()).sum::<u64>();
        let before = count();
        let slots = self.read(index)?.slots(0..i64::MAX)?;
        for slot in slots {
            // A long read would prevent the file from using its free pages again.
            if !go_on(self.read(index)?.check_slot(slot)?) {
                break;
            }
        }
        for slot in self.read(index)?.histogram_slots(0..i64::MAX)? {
            if !go_on(self.read(index)?.check_histograms(slot)?) {
                break;
            }
        }
        Ok(count().saturating_sub(before))
    }

    /// Allows the next transactions to create tables of histograms.
    pub(crate) fn expect_histograms(&self) {
        self.has_histograms.store(true, Ordering::Release);
    }

    /// Changes one granularity in one transaction, which also stores that all cells up to the
    /// journal record `through` are in the head or in documents.
    pub(crate) fn write(
        &self,
        index: GranularityIndex,
        through: u64,
        change: impl FnOnce(&mut HeadWriter<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.write_version(index, (through, through), change)
    }

    /// Changes cells of one granularity that are already in the head, in one transaction. No
    /// checkpoint may run in the meantime.
    pub(crate) fn rewrite(
        &self,
        index: GranularityIndex,
        change: impl FnOnce(&mut HeadWriter<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let through = self.read(index)?.through;
        // Until a later record raises `through`, no reader uses the cached rows of changed slots.
        self.write_version(index, (through, through + 1), change)
    }

    /// Changes one granularity. Changed slots have a new version in the cache.
    fn write_version(
        &self,
        index: GranularityIndex,
        (through, version): (u64, u64),
        change: impl FnOnce(&mut HeadWriter<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let file = self.file.read().clone();
        let (name, damage) = (&self.names[index.0], &self.damage[index.0]);
        let holes = file.transact("write", |txn| {
            let table = rows_name(name);
            let rows = txn.open_table(rows_table(&table)).map_err(fail("write"))?;
            let note_change = |slot| self.cache.note_change(index.0, slot, version);
            let keys = (self.keys[index.0], self.widths_ms[index.0]);
            let histograms = (txn, self.has_histograms.load(Ordering::Acquire), &**name);
            let all_damage = (&**damage, &*self.histogram_damage[index.0]);
            let mut writer = HeadWriter::new(all_damage, keys, rows, (&note_change, histograms));
            change(&mut writer)?;
            let holes = writer.finish(&file, txn)?;
            let mut meta = txn.open_table(META).map_err(fail("write"))?;
            meta.insert(&*through_key(name), through).map_err(fail("write"))?;
            let check = checksum(&[through]);
            meta.insert(&*check_key(name), check).map_err(fail("write"))?;
            Ok(holes)
        })?;
        if let Some(holes) = holes {
            damage.put_holes(holes);
        }
        Ok(())
    }

    /// Runs a function while no transaction changes the file.
    pub(crate) fn while_unwritten<T>(&self, run: impl FnOnce() -> T) -> Result<T, StoreError> {
        let file = self.file.read().clone();
        file.while_unwritten(run)
    }
}
