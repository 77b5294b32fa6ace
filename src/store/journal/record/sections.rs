//! Records with changes other than batches: a section for each kind of change.
//!
//! Every section uses the encoding that the journal's tables have for its content. FORMAT.md
//! describes the bytes. Must never know: the effect of a change.

use std::{borrow::Borrow, sync::Arc};

use xxhash_rust::xxh3::xxh3_64;

use super::{
    Record, batches,
    fields::{put_bytes, take_section, take_text, take_u32},
    founding::Founding,
    rows::{HostRows, put_rows, take_rows},
};
use crate::{
    model::{AcceptedBatch, SeriesId, Span, UnixMillis},
    store::{
        dictionary::changes::SeriesUpdate,
        encoding::fixed::take_bytes,
        journal::{erasure_row::Erasure, series_row},
    },
};

/// The first byte of a record with sections.
const VERSION: u8 = 2;

const NEW_SERIES: u8 = 1;
const BATCHES: u8 = 2;
const UPDATES: u8 = 3;
const FORGOTTEN: u8 = 4;
const ERASURE: u8 = 5;
const RETENTIONS: u8 = 6;
const FOUNDING: u8 = 7;
const OBJECTS: u8 = 8;
const HOSTS: u8 = 9;

/// The target of an update that is no merge; no series has this id.
const NO_TARGET: u32 = u32::MAX;

/// Appends a record to `out`.
pub(super) fn encode<B: Borrow<AcceptedBatch>>(record: &Record<B>, out: &mut Vec<u8>) {
    let from = out.len();
    out.push(VERSION);
    out.extend_from_slice(&record.now.0.to_le_bytes());
    let mut section = Vec::new();
    let mut put = |tag: u8, is_present: bool, fill: &dyn Fn(&mut Vec<u8>)| {
        if is_present {
            section.clear();
            fill(&mut section);
            out.push(tag);
            out.extend_from_slice(&(section.len() as u32).to_le_bytes());
            out.extend_from_slice(&section);
        }
    };
    put(NEW_SERIES, !record.new_series.is_empty(), &|section| {
        section.extend_from_slice(&record.first_series.to_le_bytes());
        section.extend_from_slice(&series_row::encode(record.first_series, &record.new_series));
    });
    put(BATCHES, !record.batches.is_empty(), &|section| {
        batches::encode(record.now, record.batches(), section);
    });
    put(UPDATES, !record.updates.is_empty(), &|section| {
        record.updates.iter().for_each(|update| put_update(update, section));
    });
    put(FORGOTTEN, !record.forgotten.is_empty(), &|section| {
        section.extend(record.forgotten.iter().flat_map(|id| id.0.to_le_bytes()));
    });
    put(ERASURE, record.erasure.is_some(), &|section| {
        section.extend(record.erasure.iter().flat_map(|erasure| erasure.to_row()));
    });
    put(RETENTIONS, !record.retentions.is_empty(), &|section| {
        for (level, retention) in &record.retentions {
            put_bytes(level.as_bytes(), section);
            put_bytes(retention.to_string().as_bytes(), section);
        }
    });
    put(FOUNDING, record.founding.is_some(), &|section| {
        record.founding.iter().for_each(|founding| founding.encode(section));
    });
    put(OBJECTS, !record.objects.is_empty(), &|section| put_rows(&record.objects, section));
    put(HOSTS, record.hosts.is_some(), &|section| {
        record.hosts.iter().for_each(|hosts| hosts.encode(section));
    });
    let check = xxh3_64(&out[from..]);
    out.extend_from_slice(&check.to_le_bytes());
}

/// Reads a record with sections; `None` when it is damaged.
pub(super) fn decode(bytes: &[u8]) -> Option<Record> {
    let mut rest = batches::checked(bytes)?.strip_prefix(&[VERSION])?;
    let mut record = Record::at(UnixMillis(i64::from_le_bytes(take_bytes(&mut rest)?)));
    let mut last = 0;
    while !rest.is_empty() {
        let [tag] = take_bytes(&mut rest)?;
        let section = take_section(&mut rest)?;
        if tag <= last || section.is_empty() {
            return None;
        }
        last = tag;
        read_section(tag, section, &mut record)?;
    }
    Some(record)
}

fn read_section(tag: u8, mut section: &[u8], record: &mut Record) -> Option<()> {
    let rest = &mut section;
    match tag {
        NEW_SERIES => {
            record.first_series = take_u32(rest)?;
            record.new_series = series_row::decode_all(record.first_series, rest)?;
            return (!record.new_series.is_empty()).then_some(());
        }
        BATCHES => {
            let read = batches::decode(rest)?;
            record.batches = read.batches;
            return (read.now == record.now && !record.batches.is_empty()).then_some(());
        }
        UPDATES => {
            while !rest.is_empty() {
                record.updates.push(take_update(rest)?);
            }
            let ids = record.updates.iter().map(|update| update.id);
            return ids.is_sorted_by(|id, next| id < next).then_some(());
        }
        FORGOTTEN => {
            while !rest.is_empty() {
                record.forgotten.push(SeriesId(take_u32(rest)?));
            }
            return record.forgotten.is_sorted_by(|id, next| id < next).then_some(());
        }
        ERASURE => record.erasure = Some(Arc::new(Erasure::from_row(rest)?)),
        RETENTIONS => {
            while !rest.is_empty() {
                let (level, retention) = (take_text(rest)?, take_text(rest)?.parse::<Span>());
                record.retentions.push((level.to_owned(), retention.ok()?));
            }
        }
        FOUNDING => record.founding = Some(Arc::new(Founding::decode(rest)?)),
        OBJECTS => record.objects = take_rows(rest)?,
        HOSTS => record.hosts = Some(Arc::new(HostRows::decode(rest)?)),
        _ => return None,
    }
    Some(())
}

fn put_update(update: &SeriesUpdate, out: &mut Vec<u8>) {
    out.extend_from_slice(&update.id.0.to_le_bytes());
    out.extend_from_slice(&update.into.map_or(NO_TARGET, |into| into.0).to_le_bytes());
    put_bytes(update.row(), out);
}

fn take_update(rest: &mut &[u8]) -> Option<SeriesUpdate> {
    let (id, into) = (SeriesId(take_u32(rest)?), take_u32(rest)?);
    let update = SeriesUpdate::from_row(id, take_section(rest)?)?;
    match into {
        NO_TARGET => Some(update),
        into => update.key.is_none().then(|| SeriesUpdate::merge(id, SeriesId(into))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::{Cell, GranularitySet, Kind, ListeningSpan, SeriesInfo},
        setup::{NOW, key, retention_rule, series},
        store::journal::{erasure_row::CutSlot, record::rows::RowChange},
    };

    fn records() -> Vec<Record> {
        let info = |metric: &str| {
            let info = series(metric, &[("host", "a")], Kind::Counter);
            SeriesInfo { unit: "bytes".into(), sender: "web1".into(), ..info }
        };
        let new = Record {
            first_series: 7,
            new_series: vec![info("cpu"), info("mem")],
            batches: vec![AcceptedBatch::forget("web1".into())],
            ..Record::at(NOW)
        };
        let updates = vec![
            SeriesUpdate::delete(SeriesId(1)),
            SeriesUpdate::rename(SeriesId(2), key("cpu", &[("host", "b")])),
            SeriesUpdate::merge(SeriesId(3), SeriesId(2)),
        ];
        let forgotten = vec![SeriesId(1), SeriesId(5)];
        let cells = vec![(SeriesId(2), Cell::single(7, f64::NAN))];
        let erasure = Erasure {
            through: 9,
            is_applied: false,
            range: NOW..NOW.plus(1),
            series: vec![SeriesId(2)],
            cut: vec![CutSlot { level: "5m".to_owned(), start: NOW, cells }],
        };
        let row = |key: &str, row: &[u8]| RowChange {
            key: key.to_owned(),
            row: (!row.is_empty()).then(|| row.to_vec()),
        };
        let objects = vec![row("dashboard/a", b"some bytes"), row("silence/b", b"")];
        let listening = ListeningSpan { since: 1, until: -2, listened_ms: 3 };
        let rows = vec![row("web1", b""), row("web2", b"{}")];
        let retentions = vec![("1m".to_owned(), "2d".parse().unwrap())];
        vec![
            new,
            Record { updates, forgotten, ..Record::at(NOW) },
            Record { erasure: Some(Arc::new(erasure)), ..Record::at(NOW) },
            Record { retentions, ..Record::at(NOW) },
            Record { founding: Some(Arc::new(founding())), ..Record::at(NOW) },
            Record { objects, ..Record::at(NOW) },
            Record { hosts: Some(Arc::new(HostRows { listening, rows })), ..Record::at(NOW) },
        ]
    }

    fn founding() -> Founding {
        let granularities = GranularitySet::default();
        let levels = [("1m", Some("12h")), ("5m", None)];
        let rules = vec![retention_rule(("debug", "m[01]"), &levels, &granularities)];
        Founding { granularities, rules }
    }

    #[test]
    fn a_record_is_read_as_it_was_written_and_a_damaged_one_is_refused() {
        for record in records() {
            let bytes = record.to_bytes();
            assert_eq!(bytes[0], VERSION);
            assert_eq!(Record::from_bytes(&bytes), Some(record));
            for length in 0..bytes.len() {
                assert_eq!(Record::from_bytes(&bytes[..length]), None, "{length} bytes");
            }
            for bit in 0..bytes.len() * 8 {
                let mut flipped = bytes.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(Record::from_bytes(&flipped), None, "bit {bit}");
            }
        }
    }
}
