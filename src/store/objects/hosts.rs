//! The hosts that ping, in the file of objects: a row each, as JSON with a checksum.
//!
//! Must never know: when hosts are stored, the content of their records.

use redb::{ReadableTable, Table, WriteTransaction};

use super::{
    file::{HOSTS, META, fail, read as read_file},
    row::checksum,
};
use crate::{
    model::{HostChanges, HostRecord, ListeningSpan, ProjectName, StoredHosts, split_stored_name},
    store::{
        error::StoreError,
        file::database::DatabaseFile,
        journal::record::rows::{HostRows, RowChange},
    },
};

/// The key of the time at which the last daemon began to listen.
const SINCE_KEY: &str = "hosts_since";
/// The key of the time until which the last daemon listened at least.
const UNTIL_KEY: &str = "hosts_until";
/// The key of the last daemon's listening time in milliseconds.
const LISTENED_KEY: &str = "hosts_listened";

const OPERATION: &str = "store hosts";

/// Reads all hosts; `fault` gets a description of each damaged row.
pub(super) fn read(
    file: &DatabaseFile,
    fault: &mut dyn FnMut(String),
) -> Result<StoredHosts, StoreError> {
    read_file(file, |txn| {
        let hosts = txn.open_table(HOSTS).map_err(fail("read"))?;
        let meta = txn.open_table(META).map_err(fail("read"))?;
        let time = |key| {
            let found = meta.get(key).map_err(fail("read"))?;
            Ok::<_, StoreError>(found.map_or(0, |guard| guard.value() as i64))
        };
        let mut kept = StoredHosts {
            listening: ListeningSpan {
                since: time(SINCE_KEY)?,
                until: time(UNTIL_KEY)?,
                listened_ms: time(LISTENED_KEY)?,
            },
            ..StoredHosts::default()
        };
        for entry in hosts.iter().map_err(fail("read"))? {
            let (name, row) = entry.map_err(fail("read"))?;
            match decode(row.value(), name.value()) {
                Some(record) => kept.records.push((name.value().into(), record)),
                None => fault(format!("host {:?}: its checksum does not fit", name.value())),
            }
        }
        Ok(kept)
    })
}

/// Writes changes in one transaction.
pub(super) fn write(
    file: &DatabaseFile,
    project: &ProjectName,
    changes: &HostChanges,
) -> Result<(), StoreError> {
    file.transact(OPERATION, |txn| {
        let mut hosts = txn.open_table(HOSTS).map_err(fail(OPERATION))?;
        for (name, record) in &changes.changed {
            let name = project.stored_name(name);
            hosts.insert(&*name, &*encode(record, &name)).map_err(fail(OPERATION))?;
        }
        for name in &changes.removed {
            hosts.remove(&*project.stored_name(name)).map_err(fail(OPERATION))?;
        }
        let mut meta = txn.open_table(META).map_err(fail(OPERATION))?;
        set_listening(&mut meta, changes.listening)
    })
}

fn set_listening(
    meta: &mut Table<'_, &'static str, u64>,
    ListeningSpan { since, until, listened_ms }: ListeningSpan,
) -> Result<(), StoreError> {
    for (key, time) in [(SINCE_KEY, since), (UNTIL_KEY, until), (LISTENED_KEY, listened_ms)] {
        meta.insert(key, time as u64).map_err(fail(OPERATION))?;
    }
    Ok(())
}

/// Returns changes as rows, divided so that each part has about `bytes_max` bytes at most.
pub(super) fn parts(
    project: &ProjectName,
    changes: &HostChanges,
    bytes_max: usize,
) -> impl Iterator<Item = HostRows> {
    let changed = changes.changed.iter().map(|(name, record)| (name, Some(record)));
    let removed = changes.removed.iter().map(|name| (name, None));
    let mut rows = changed.chain(removed).map(|(name, record)| {
        let key = project.stored_name(name);
        let row = record.map(|record| encode(record, &key));
        RowChange { key: (*key).to_owned(), row }
    });
    let (listening, mut is_first) = (changes.listening, true);
    std::iter::from_fn(move || {
        let (mut part, mut bytes) = (HostRows { listening, rows: Vec::new() }, 0);
        while bytes < bytes_max
            && let Some(row) = rows.next()
        {
            bytes += row.key.len() + row.row.as_ref().map_or(0, Vec::len);
            part.rows.push(row);
        }
        // Without changes, the only part has the time.
        (std::mem::take(&mut is_first) || !part.rows.is_empty()).then_some(part)
    })
}

/// Returns true for a change that [`parts`] can return.
pub(super) fn is_valid(change: &RowChange) -> bool {
    let (project, name) = split_stored_name(&change.key);
    let is_key = ProjectName::new(project)
        .is_ok_and(|project| !name.is_empty() && *project.stored_name(name) == *change.key);
    is_key && change.row.as_ref().is_none_or(|row| decode(row, &change.key).is_some())
}

/// Writes rows within a transaction.
pub(super) fn write_rows(
    txn: &WriteTransaction,
    meta: &mut Table<'_, &'static str, u64>,
    changes: &HostRows,
) -> Result<(), StoreError> {
    let mut hosts = txn.open_table(HOSTS).map_err(fail(OPERATION))?;
    for RowChange { key, row } in &changes.rows {
        let written = match row {
            Some(row) => hosts.insert(&**key, &**row),
            None => hosts.remove(&**key),
        };
        drop(written.map_err(fail(OPERATION))?);
    }
    set_listening(meta, changes.listening)
}

fn encode(record: &HostRecord, name: &str) -> Vec<u8> {
    // Serialization fails only for maps whose keys are not strings, and records have no such maps.
    let mut row = serde_json::to_vec(record).unwrap_or_default();
    row.extend_from_slice(&checksum(&row, name));
    row
}

/// Reads the row of a host; `None` when it is damaged or belongs to another host.
fn decode(row: &[u8], name: &str) -> Option<HostRecord> {
    let (json, sum) = row.split_last_chunk::<8>()?;
    if *sum != checksum(json, name) {
        return None;
    }
    serde_json::from_slice(json).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{AgentRecord, HostEvent, HostEventKind};

    fn record() -> HostRecord {
        HostRecord {
            first_seen: 1,
            kept_ms: 9,
            agents: vec![AgentRecord {
                agent: "web1".to_owned(),
                program: "host".to_owned(),
                version: "0.1.0".to_owned(),
                started: 2,
                booted: Some(3),
                interval_ms: 10_000,
                sent: 4,
                pinged: 5,
                silent_ms: 6,
                tags: [("role".to_owned(), "db".to_owned())].into(),
                stopped: false,
            }],
            events: vec![HostEvent {
                at: 7,
                until: Some(8),
                kind: HostEventKind::Gap,
                program: String::new(),
            }],
        }
    }

    #[test]
    fn a_row_follows_the_format() {
        let text = r#"{"first_seen":1,"kept_ms":9,"agents":[{"agent":"web1","program":"host","#
            .to_owned()
            + r#""version":"0.1.0","started":2,"booted":3,"interval_ms":10000,"sent":4,"pinged":5,"#
            + r#""silent_ms":6,"tags":{"role":"db"}}],"events":[{"at":7,"until":8,"kind":"gap"}]}"#;
        let row = encode(&record(), "web1");
        assert_eq!(std::str::from_utf8(&row[..row.len() - 8]), Ok(&*text));
        assert_eq!(row[row.len() - 8..], checksum(text.as_bytes(), "web1"));
        assert_eq!(decode(&row, "web1"), Some(record()));
    }

    #[test]
    fn a_damaged_row_or_a_row_of_another_host_is_refused() {
        let row = encode(&record(), "web1");
        assert_eq!(decode(&row, "web2"), None);
        assert_eq!(decode(&row[1..], "web1"), None);
        for at in 0..row.len() {
            let mut flipped = row.clone();
            flipped[at] ^= 1;
            assert_eq!(decode(&flipped, "web1"), None, "byte {at}");
        }
    }
}
