//! The head, `head.redb`: cells that checkpoints have moved out of memory and that are not in
//! documents yet.
//!
//! A document is written when its period is over. Until then, checkpoints merge its cells into the
//! head, where neighbouring series share a row; this costs a fraction of patching each document.
//! For each granularity, the head stores the last journal record whose cells it contains. Must
//! never know: which cells belong in documents; the checkpoint decides.

pub(crate) mod cache;
mod cell;
mod elapsed;
pub(crate) mod fuzzing;
mod histograms;
mod moments;
mod opening;
mod reader;
pub(crate) mod row;
#[cfg(test)]
mod tests;
mod writer;

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::RwLock;
use redb::{ReadTransaction, ReadableTable, TableDefinition};

pub(crate) use reader::HeadReader;

use super::{
    encoding::lanes::series_at,
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
pub(crate) use opening::records_of;
use opening::{Opened, open_file, open_whole, presumed, read_slots};
use row::HeadRow;
use writer::HeadWriter;

const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
const OPTIONS: FileOptions = FileOptions { cache_bytes: 8 << 20, quick_repair: true };
/// Prefix of tables with rows; a granularity's name follows.
pub(crate) const ROWS_PREFIX: &str = "rows/";
/// Prefix of the tables of histograms; a granularity's name follows.
pub(crate) const HISTOGRAMS_PREFIX: &str = "histograms/";
/// The number of low bits of a key that contain the number of the row.
const ROW_BITS: u32 = 26;

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

    /// Returns the cache of rows.
    pub(crate) fn cache(&self) -> &RowCache {
        &self.cache
    }

    /// Returns the number of rows that were found damaged.
    pub(crate) fn damaged_rows(&self) -> u64 {
        self.damage.iter().chain(&self.histogram_damage).map(|damage| damage.count()).sum()
    }

    /// Returns the number of holes that earlier runs stored, and of holes that were lost with a
    /// whole head.
    pub(crate) fn holes_from_before(&self) -> u64 {
        let lost: usize = self.lost.read().iter().map(|lost| lost.stretches().len()).sum();
        self.damage.iter().map(|damage| damage.holes_from_before()).sum::<u64>() + lost as u64
    }

    /// Returns the slots of a granularity whose rows were damaged or lost with a head, in this run
    /// or an earlier one.
    pub(crate) fn holes(&self, index: GranularityIndex) -> Vec<Range<UnixMillis>> {
        let (damage, width_ms) = (&self.damage[index.0], self.widths_ms[index.0]);
        let keys = damage.keys().into_iter().chain(self.histogram_damage[index.0].keys());
        let mut slots: Vec<_> = keys.map(slot_of_key).collect();
        slots.sort_unstable();
        slots.dedup();
        let mut holes = self.remembered_holes(index).stretches().to_vec();
        holes.extend(slots.into_iter().map(|slot| slot..slot.plus(width_ms)));
        holes
    }

    /// Returns the slots of a granularity whose damaged rows were replaced, or that were lost with
    /// a head.
    pub(crate) fn remembered_holes(&self, index: GranularityIndex) -> Holes {
        let mut holes = self.damage[index.0].holes();
        holes.add_all(&self.lost.read()[index.0]);
        holes
    }

    /// Adds slots whose cells were lost with a head to the holes; the next truncation of the
    /// journal stores them durably.
    pub(crate) fn add_lost(&self, slots: &[InHead]) {
        let mut lost = self.lost.write();
        for (lost_slots, key) in lost.iter_mut().zip(&self.keys) {
            let of_key = slots.iter().filter(|slots| slots.key == *key);
            of_key.for_each(|slots| lost_slots.add_all(&slots.slots));
        }
    }

    /// Stores durably which slots were lost with heads. Must be called before the head is written,
    /// because after a write the head no longer looks older than the journal's last truncation.
    pub(crate) fn keep_lost(&self) -> Result<(), StoreError> {
        self.register.journal().keep_lost(&self.lost(), &self.presumed)
    }

    /// Forgets the slots of a granularity that were lost with heads before the time since which the
    /// granularity is complete; the next truncation of the journal makes this durable.
    pub(crate) fn forget_lost(&self, index: GranularityIndex, before: UnixMillis) {
        self.lost.write()[index.0].forget_before(before);
    }

    /// Removes times of a granularity from the slots that were lost with heads, durably.
    pub(crate) fn note_mended(
        &self,
        index: GranularityIndex,
        mended: &[Range<UnixMillis>],
    ) -> Result<(), StoreError> {
        for range in mended {
            self.lost.write()[index.0].remove(range);
        }
        self.keep_lost()
    }

    /// Returns the slots whose cells were lost with heads.
    pub(crate) fn lost(&self) -> Vec<InHead> {
        let lost = self.lost.read();
        let by_key = self.keys.iter().zip(&*lost);
        by_key.map(|(key, slots)| InHead { key: *key, slots: slots.clone() }).collect()
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

    /// Sets the head aside and creates a new head if an error was caused by its damage. Returns
    /// true in this case.
    pub(crate) fn replace_if_damaged(&self, fault: &StoreError) -> Result<bool, StoreError> {
        if !fault.is_damage_of(HEAD_FILE) {
            return Ok(false);
        }
        let mut file = self.file.write();
        if !file.is_damaged() {
            // Another thread found the damage first, and has replaced the head.
            return Ok(true);
        }
        self.register.set_aside(HEAD_FILE, fault)?;
        // The first write to the new head makes it as new as the journal's last truncation, so the
        // lost slots must be stored first.
        let in_head = self.register.journal().in_head(&self.presumed)?;
        let in_head = self.keys.iter().zip(in_head);
        let slots = in_head.filter_map(|(key, slots)| Some(InHead { key: *key, slots: slots? }));
        self.add_lost(&slots.collect::<Vec<_>>());
        self.keep_lost()?;
        *file = Arc::new(open_file(&self.medium, &self.names)?);
        self.register.note(HEAD_FILE)?;
        Ok(true)
    }

    /// Runs a function while no transaction changes the file.
    pub(crate) fn while_unwritten<T>(&self, run: impl FnOnce() -> T) -> Result<T, StoreError> {
        let file = self.file.read().clone();
        file.while_unwritten(run)
    }
}

fn rows_name(granularity: &str) -> String {
    format!("{ROWS_PREFIX}{granularity}")
}

/// Returns the name of a granularity's table of histograms.
fn histograms_name(granularity: &str) -> String {
    format!("{HISTOGRAMS_PREFIX}{granularity}")
}

fn rows_table(name: &str) -> TableDefinition<'_, u64, &'static [u8]> {
    TableDefinition::new(name)
}

fn through(txn: &ReadTransaction, granularity: &str) -> Result<Option<u64>, StoreError> {
    let meta = txn.open_table(META).map_err(fail("read"))?;
    let value = |key: String| {
        Ok::<_, StoreError>(meta.get(&*key).map_err(fail("read"))?.map(|guard| guard.value()))
    };
    let through = value(through_key(granularity))?;
    if value(check_key(granularity))? == through.map(|through| checksum(&[through])) {
        return Ok(through);
    }
    let problem = format!("the checksum of {} does not match", through_key(granularity));
    Err(StoreError::Corrupt { file: HEAD_FILE.to_owned(), problem })
}

fn check_key(granularity: &str) -> String {
    format!("through_check/{granularity}")
}

fn through_key(granularity: &str) -> String {
    format!("through/{granularity}")
}

fn fail<E: Into<redb::Error>>(operation: &'static str) -> impl FnOnce(E) -> StoreError {
    StoreError::redb(operation, HEAD_FILE)
}

/// Returns the key of a row: the slot's start in seconds, then the row's number. Slots begin at
/// whole seconds.
fn key(slot_start: i64, row: u32) -> u64 {
    ((slot_start / 1000) as u64) << ROW_BITS | u64::from(row)
}

fn row_of_key(key: u64) -> u32 {
    (key & ((1 << ROW_BITS) - 1)) as u32
}

/// Reads a row; `None` when it is damaged.
///
/// # Errors
/// When the damage is found for the first time: it is then logged and counted.
fn read_row<'a>(
    damage: &Damage,
    key: u64,
    bytes: &'a [u8],
) -> Result<Option<HeadRow<'a>>, StoreError> {
    let row = HeadRow::parse(bytes, key);
    if row.is_some() {
        return Ok(row);
    }
    note_damage(damage, key, "samples")?;
    Ok(None)
}

/// Notes that the `content` of a row is damaged.
///
/// # Errors
/// When the damage is found for the first time: it is then logged and counted.
fn note_damage(damage: &Damage, key: u64, content: &str) -> Result<(), StoreError> {
    let (first_series, slot) = (series_at(row_of_key(key), 0).0, slot_of_key(key));
    let is_new = damage.note(key, || {
        tracing::error!(
            file = HEAD_FILE,
            first_series,
            %slot,
            "a row is damaged: the {content} in it are missing at its granularity"
        );
    });
    if !is_new {
        return Ok(());
    }
    let part = format!(
        "the {content} of the row that begins with series {first_series}, in the slot at {slot},"
    );
    Err(StoreError::DamagedPart { file: HEAD_FILE.to_owned(), part })
}

fn slot_of_key(key: u64) -> UnixMillis {
    UnixMillis((key >> ROW_BITS) as i64 * 1000)
}

/// Returns the starts of the slots within a range that have rows, ascending.
fn slots(
    rows: &impl ReadableTable<u64, &'static [u8]>,
    range: Range<i64>,
) -> Result<Vec<i64>, StoreError> {
    let mut found = Vec::new();
    let mut from = key(range.start.max(0), 0);
    let end = key(range.end.clamp(0, UnixMillis::MAX.0), 0);
    while from < end {
        let mut next = rows.range(from..end).map_err(fail("read"))?;
        let Some(entry) = next.next() else { break };
        let (first, _) = entry.map_err(fail("read"))?;
        let slot_start = (first.value() >> ROW_BITS) as i64 * 1000;
        found.push(slot_start);
        from = key(slot_start + 1000, 0);
    }
    Ok(found)
}
