//! The head: `head.redb`, the cells that checkpoints took up and documents do not have yet.
//!
//! A document is written when its period is over. Until then a checkpoint merges its cells here,
//! where neighbouring series share a row, so that it costs a fraction of patching each document.
//! For each granularity the head says which journal record it holds everything up to. Must never
//! know which cells belong into documents: the checkpoint says that.

pub(crate) mod cache;
mod cell;
mod elapsed;
pub(crate) mod fuzzing;
mod old_rows;
mod reader;
pub(crate) mod row;
#[cfg(test)]
mod tests;
mod writer;

use std::{ops::Range, sync::Arc};

use parking_lot::RwLock;
use redb::{ReadTransaction, ReadableTable, TableDefinition, WriteTransaction};

pub(crate) use reader::HeadReader;

use super::{
    error::StoreError,
    file::{
        checksum::checksum,
        damage::Damage,
        database::{DatabaseFile, FileOptions},
        holes::Holes,
        medium::Medium,
        names::HEAD_FILE,
        version::{self, FORMAT_VERSION, VERSION_KEY},
    },
    journal::register::Register,
    rows::series_at,
};
use crate::model::{Granularity, GranularityIndex, UnixMillis};
use cache::RowCache;
use row::Row;
use writer::HeadWriter;

const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
const OPTIONS: FileOptions = FileOptions { cache_bytes: 8 << 20, quick_repair: true };
/// Of tables with rows; a granularity's name follows.
const ROWS_PREFIX: &str = "rows/";
/// Low bits of a key: the number of the row, 64 series each, in its slot.
const ROW_BITS: u32 = 26;

/// The open head.
#[derive(Debug)]
pub(crate) struct Head {
    medium: Arc<dyn Medium>,
    /// Names of the granularities, finest first.
    names: Vec<String>,
    /// Widths of their slots.
    widths_ms: Vec<i64>,
    register: Arc<Register>,
    file: RwLock<Arc<DatabaseFile>>,
    /// Keys of rows that were found damaged, and the holes of those that were written anew, by
    /// granularity.
    damage: Vec<Arc<Damage>>,
    cache: Arc<RowCache>,
}

impl Head {
    /// Opens the head, creating it when there is none. A damaged one is set aside.
    pub(crate) fn open(
        medium: Arc<dyn Medium>,
        granularities: &[Granularity],
        register: Arc<Register>,
    ) -> Result<Self, StoreError> {
        let names: Vec<_> = granularities.iter().map(|own| own.name.clone()).collect();
        let file = match open_file(&medium, &names) {
            Err(fault) if fault.is_damage() => {
                register.set_aside(HEAD_FILE, &fault)?;
                open_file(&medium, &names)?
            }
            outcome => outcome?,
        };
        register.note(&[HEAD_FILE.to_owned()])?;
        let widths_ms: Vec<_> = granularities.iter().map(|own| own.width_ms).collect();
        let read = |(name, width_ms): (&String, &i64)| read_damage(&file, name, *width_ms);
        let damage = names.iter().zip(&widths_ms).map(read).collect::<Result<_, _>>()?;
        let file = RwLock::new(Arc::new(file));
        let cache = Arc::new(RowCache::new(names.len()));
        Ok(Self { medium, names, widths_ms, register, file, damage, cache })
    }

    /// Bytes that the head takes on the medium.
    pub(crate) fn bytes(&self) -> u64 {
        self.medium.allocated_bytes(HEAD_FILE).unwrap_or(0)
    }

    /// Rows that were read lately.
    pub(crate) fn cache(&self) -> &RowCache {
        &self.cache
    }

    /// Rows that were found damaged.
    pub(crate) fn damaged_rows(&self) -> u64 {
        self.damage.iter().map(|damage| damage.count()).sum()
    }

    /// Stretches in which earlier runs wrote rows in place of damaged ones.
    pub(crate) fn holes_from_before(&self) -> u64 {
        self.damage.iter().map(|damage| damage.holes_from_before()).sum()
    }

    /// Where rows of a granularity were found damaged, also by earlier runs.
    pub(crate) fn holes(&self, index: GranularityIndex) -> Vec<Range<UnixMillis>> {
        let (damage, width_ms) = (&self.damage[index.0], self.widths_ms[index.0]);
        let mut slots: Vec<_> = damage.keys().into_iter().map(slot_of_key).collect();
        slots.dedup();
        let mut holes = damage.holes().stretches().to_vec();
        holes.extend(slots.into_iter().map(|slot| slot..slot.plus(width_ms)));
        holes
    }

    /// Where rows of a granularity were written in place of damaged ones.
    pub(crate) fn remembered_holes(&self, index: GranularityIndex) -> Holes {
        self.damage[index.0].holes()
    }

    /// A consistent view of one granularity.
    pub(crate) fn read(&self, index: GranularityIndex) -> Result<HeadReader, StoreError> {
        let file = self.file.read().clone();
        let txn = file.read()?;
        let name = &self.names[index.0];
        let (through, rows) = file.guard("read", || {
            let through = through(&txn, name)?;
            let table = rows_name(name);
            let rows = txn.open_table(rows_table(&table)).map_err(fail("read"))?;
            Ok((through, rows))
        })?;
        let (damage, cache) = (self.damage[index.0].clone(), self.cache.clone());
        Ok(HeadReader { file, damage, through, rows, cache, granularity: index.0 })
    }

    /// Changes one granularity in one transaction, which also notes that everything up to the
    /// journal record `through` is here or in documents.
    pub(crate) fn write(
        &self,
        index: GranularityIndex,
        through: u64,
        change: impl FnOnce(&mut HeadWriter<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let file = self.file.read().clone();
        let (name, damage) = (&self.names[index.0], &self.damage[index.0]);
        let holes = file.transact("write", |txn| {
            let table = rows_name(name);
            let rows = txn.open_table(rows_table(&table)).map_err(fail("write"))?;
            let note_change = |slot| self.cache.note_change(index.0, slot, through);
            let width_ms = self.widths_ms[index.0];
            let mut writer = HeadWriter::new(damage, width_ms, rows, &note_change);
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

    /// Sets the head aside when an operation on it failed because it is damaged, and begins a new
    /// one; returns whether that was done.
    pub(crate) fn replace_if_damaged(&self, fault: &StoreError) -> Result<bool, StoreError> {
        if !fault.is_damage_of(HEAD_FILE) {
            return Ok(false);
        }
        let mut file = self.file.write();
        if !file.is_damaged() {
            // Another thread met the damage first.
            return Ok(true);
        }
        self.register.set_aside(HEAD_FILE, fault)?;
        *file = Arc::new(open_file(&self.medium, &self.names)?);
        self.register.note(&[HEAD_FILE.to_owned()])?;
        Ok(true)
    }

    /// Runs something while no transaction changes the file.
    pub(crate) fn while_unwritten<T>(&self, run: impl FnOnce() -> T) -> Result<T, StoreError> {
        let file = self.file.read().clone();
        file.while_unwritten(run)
    }
}

fn open_file(medium: &Arc<dyn Medium>, names: &[String]) -> Result<DatabaseFile, StoreError> {
    const OPERATION: &str = "create tables";
    let create = |txn: &WriteTransaction| {
        let mut meta = txn.open_table(META).map_err(fail(OPERATION))?;
        meta.insert(VERSION_KEY, FORMAT_VERSION).map_err(fail(OPERATION))?;
        old_rows::rewrite(txn)?;
        for name in names {
            txn.open_table(rows_table(&rows_name(name))).map_err(fail(OPERATION))?;
        }
        Ok(())
    };
    let name = HEAD_FILE.to_owned();
    let fault = |cause| StoreError::Io { operation: "look for", file: name.clone(), cause };
    let file = if medium.exists(HEAD_FILE).map_err(fault)? {
        DatabaseFile::open(medium, name, OPTIONS)?
    } else {
        DatabaseFile::create(medium, name, OPTIONS, |_, txn| create(txn))?
    };
    let found = file.guard("open", || {
        let txn = file.read()?;
        let meta = txn.open_table(META).map_err(fail("open"))?;
        let version = meta.get(VERSION_KEY).map_err(fail("open"))?.map_or(0, |guard| guard.value());
        let known = |name| txn.open_table(rows_table(&rows_name(name))).is_ok();
        Ok((version, names.iter().all(|name| known(name))))
    })?;
    let (version, is_complete) = found;
    version::check(HEAD_FILE, version)?;
    // An older release wrote it, or a granularity was added to the settings.
    if version != FORMAT_VERSION || !is_complete {
        file.transact(OPERATION, create)?;
    }
    if version != FORMAT_VERSION {
        let bytes = file.bytes()?;
        // Nobody reads yet.
        file.compact()?;
        let after = file.bytes()?;
        tracing::info!(file = HEAD_FILE, version, bytes, after, "raised to this format");
    }
    Ok(file)
}

/// What is known of damage of a granularity. If that is damaged itself, all that it has may be.
fn read_damage(file: &DatabaseFile, name: &str, width_ms: i64) -> Result<Arc<Damage>, StoreError> {
    let slots = file.guard("read", || {
        let name = rows_name(name);
        let rows = file.read()?.open_table(rows_table(&name)).map_err(fail("read"))?;
        let slot = |entry: Option<(redb::AccessGuard<'_, u64>, _)>| {
            entry.map(|(key, _)| slot_of_key(key.value()))
        };
        let first = slot(rows.first().map_err(fail("read"))?);
        Ok(first.zip(slot(rows.last().map_err(fail("read"))?)))
    })?;
    let all =
        slots.map_or(UnixMillis::MIN..UnixMillis::MIN, |(first, last)| first..last.plus(width_ms));
    Damage::read(file, width_ms, all).map(Arc::new)
}

fn rows_name(granularity: &str) -> String {
    format!("{ROWS_PREFIX}{granularity}")
}

fn rows_table(name: &str) -> TableDefinition<'_, u64, &'static [u8]> {
    TableDefinition::new(name)
}

fn through(txn: &ReadTransaction, granularity: &str) -> Result<u64, StoreError> {
    let meta = txn.open_table(META).map_err(fail("read"))?;
    let value = |key: String| {
        Ok::<_, StoreError>(meta.get(&*key).map_err(fail("read"))?.map(|guard| guard.value()))
    };
    let through = value(through_key(granularity))?.unwrap_or(0);
    // Older releases wrote none.
    match value(check_key(granularity))? {
        Some(check) if check != checksum(&[through]) => {
            let problem = format!("{} is not as it was written", through_key(granularity));
            Err(StoreError::Corrupt { file: HEAD_FILE.to_owned(), problem })
        }
        _ => Ok(through),
    }
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

/// Key of a row: the slot's start in seconds, then the row's number. Slots are whole seconds.
fn key(slot_start: i64, row: u32) -> u64 {
    ((slot_start / 1000) as u64) << ROW_BITS | u64::from(row)
}

fn row_of_key(key: u64) -> u32 {
    (key & ((1 << ROW_BITS) - 1)) as u32
}

/// Reads a row. A damaged one is as good as none, but for the first time, when it is an error,
/// named in the log, and counted.
fn read_row<'a>(damage: &Damage, key: u64, bytes: &'a [u8]) -> Result<Option<Row<'a>>, StoreError> {
    let row = Row::parse(bytes, key);
    if row.is_some() {
        return Ok(row);
    }
    let (first_series, slot) = (series_at(row_of_key(key), 0).0, slot_of_key(key));
    let is_new = damage.note(key, || {
        tracing::error!(
            file = HEAD_FILE,
            first_series,
            %slot,
            "a row is damaged: the samples in it are missing at its granularity"
        );
    });
    if !is_new {
        return Ok(None);
    }
    let part = format!("the row of series {first_series} and on, slot at {slot},");
    Err(StoreError::DamagedPart { file: HEAD_FILE.to_owned(), part })
}

fn slot_of_key(key: u64) -> UnixMillis {
    UnixMillis((key >> ROW_BITS) as i64 * 1000)
}

/// Starts of the slots within a range that have rows, ascending.
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
