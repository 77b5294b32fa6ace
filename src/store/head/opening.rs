//! Opening of the head: its file, its known damage, and the slots that were lost with heads.
//!
//! A head that is older than the last truncation of the journal replaced the head of that time: the
//! slots whose cells were in the former head are lost. Must never know: the use of rows.

use std::sync::Arc;

use redb::{ReadableTable, TableHandle, WriteTransaction};

use super::{
    Head, OPTIONS,
    keys::{HISTOGRAMS_PREFIX, META, fail, rows_name, rows_table, slot_of_key, slots, through},
};
use crate::{
    model::{Granularity, UnixMillis},
    store::{
        error::StoreError,
        file::{
            damage::Damage,
            database::DatabaseFile,
            holes::{HOLES, Holes, stretch_key},
            medium::Medium,
            names::HEAD_FILE,
            version::{self, VERSION_KEY},
        },
        journal::in_head::{InHead, Presumed},
    },
};

/// The maximum time after the end of the last run for which samples may exist, because of senders'
/// clocks.
const PRESUMED_AHEAD_MS: i64 = 86_400_000;

/// A head's file, and its damage by granularity.
pub(super) struct Opened {
    pub(super) file: DatabaseFile,
    pub(super) damage: Vec<Arc<Damage>>,
    pub(super) has_histograms: bool,
}

/// Returns the slots that count as lost when a head is lost and the journal's row about them is
/// damaged: the documents that were current at the end of the last run, and the documents before
/// them.
pub(super) fn presumed(granularity: &Granularity, ran_until: UnixMillis) -> Presumed {
    let before = granularity.document_start(granularity.document_start(ran_until).minus(1));
    let key = stretch_key(&granularity.name, granularity.width_ms);
    (key, before..ran_until.plus(PRESUMED_AHEAD_MS))
}

impl Head {
    /// Returns the slots of each granularity whose cells were lost with heads.
    pub(super) fn find_lost(&self) -> Result<Vec<Holes>, StoreError> {
        let journal = self.register.journal();
        let mut lost = journal.lost_with_heads(&self.presumed)?;
        let in_head = journal.in_head(&self.presumed)?.into_iter().zip(self.is_older()?);
        for ((index, lost), (in_head, is_older)) in lost.iter_mut().enumerate().zip(in_head) {
            // Before the first truncation of the journal, and for a granularity that was added
            // since the last one, nothing is stored.
            let slots = in_head.filter(|slots| is_older && !slots.is_empty());
            let Some(slots) = slots else { continue };
            let granularity = &*self.names[index];
            let (from, to) = (slots.stretches().first(), slots.stretches().last());
            let (from, to) = (from.map(|slots| slots.start.0), to.map(|slots| slots.end.0));
            tracing::error!(
                file = HEAD_FILE,
                granularity,
                from,
                to,
                "the head of the last checkpoint is lost: samples of this time are missing"
            );
            lost.add_all(&slots);
        }
        Ok(lost)
    }

    /// Returns true, for each granularity, when the head is older than the last truncation of the
    /// journal.
    fn is_older(&self) -> Result<Vec<bool>, StoreError> {
        let file = self.file.read().clone();
        let cut = self.register.journal().checkpointed_through()?;
        let txn = file.read()?;
        let read = |(index, name): (usize, &String)| {
            // A granularity that no longer accepts samples is not written at every checkpoint.
            let is_older = |through: u64| index < self.living && through < cut;
            match through(&txn, name) {
                // The next read finds the damage again and sets the head aside.
                Err(fault) if fault.is_damage_of(HEAD_FILE) => Ok(false),
                through => Ok(through?.is_none_or(is_older)),
            }
        };
        self.names.iter().enumerate().map(read).collect()
    }
}

/// Opens the head and reads its known damage.
pub(super) fn open_whole(
    medium: &Arc<dyn Medium>,
    names: &[String],
    widths_ms: &[i64],
) -> Result<Opened, StoreError> {
    let file = open_file(medium, names)?;
    let read = |(name, width_ms): (&String, &i64)| read_damage(&file, name, *width_ms);
    let damage = names.iter().zip(widths_ms).map(read).collect::<Result<_, _>>()?;
    let has_histograms = file.guard("open", || {
        let txn = file.read()?;
        let mut tables = txn.list_tables().map_err(fail("open"))?;
        Ok(tables.any(|table| table.name().starts_with(HISTOGRAMS_PREFIX)))
    })?;
    Ok(Opened { file, damage, has_histograms })
}

/// Returns the slots of each granularity that have rows.
pub(super) fn read_slots(
    file: &DatabaseFile,
    names: &[String],
    widths_ms: &[i64],
) -> Result<Vec<InHead>, StoreError> {
    let txn = file.read()?;
    let read = |(name, width_ms): (&String, &i64)| {
        let rows = txn.open_table(rows_table(&rows_name(name))).map_err(fail("read"))?;
        let mut found = Holes::default();
        for slot in slots(&rows, 0..i64::MAX)? {
            found.add(UnixMillis(slot)..UnixMillis(slot).plus(*width_ms));
        }
        Ok(InHead { key: stretch_key(name, *width_ms), slots: found })
    };
    names.iter().zip(widths_ms).map(read).collect()
}

/// Opens the head's file, or creates it.
pub(super) fn open_file(
    medium: &Arc<dyn Medium>,
    names: &[String],
) -> Result<DatabaseFile, StoreError> {
    const OPERATION: &str = "create tables";
    let format = medium.format();
    let create = |txn: &WriteTransaction| {
        let mut meta = txn.open_table(META).map_err(fail(OPERATION))?;
        meta.insert(VERSION_KEY, format).map_err(fail(OPERATION))?;
        txn.open_table(HOLES).map_err(fail(OPERATION))?;
        for name in names {
            txn.open_table(rows_table(&rows_name(name))).map_err(fail(OPERATION))?;
        }
        Ok(())
    };
    let name = HEAD_FILE.to_owned();
    let fault = |cause| StoreError::Io { operation: "find", file: name.clone(), cause };
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
    version::check(HEAD_FILE, version, format)?;
    // An older release wrote the file, or a granularity was added to the settings.
    if version != format || !is_complete {
        file.transact(OPERATION, create)?;
    }
    Ok(file)
}

/// Reads the holes of a granularity. When the row of holes is damaged, all slots count as holes.
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
    Damage::read(file, stretch_key(name, width_ms), all).map(Arc::new)
}

/// Returns the last record whose cells are in the head of a medium, for each granularity; `None`
/// when the head is missing, is damaged, or lacks one of the granularities. A damaged head is not
/// set aside.
pub(crate) fn records_of(
    medium: &Arc<dyn Medium>,
    granularities: impl Iterator<Item = Granularity>,
) -> Result<Option<Vec<u64>>, StoreError> {
    let fault = |cause| StoreError::Io { operation: "find", file: HEAD_FILE.to_owned(), cause };
    if !medium.exists(HEAD_FILE).map_err(fault)? {
        return Ok(None);
    }
    let read = || {
        let file = DatabaseFile::open(medium, HEAD_FILE.to_owned(), OPTIONS)?;
        file.guard("read", || {
            let txn = file.read()?;
            granularities
                .map(|granularity| through(&txn, &granularity.name))
                .collect::<Result<Option<Vec<_>>, _>>()
        })
    };
    match read() {
        Err(fault) if fault.is_damage() => Ok(None),
        outcome => outcome,
    }
}
