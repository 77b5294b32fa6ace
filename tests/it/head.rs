//! The head of the store: decoded cells, damaged rows, and their holes.

use std::collections::BTreeMap;

use granary::{
    model::{AcceptedBatch, GranularityIndex, Histogram, Kind, SeriesId, UnixMillis},
    store::{Appender, verify},
};
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};

use crate::setup::{HOUR, MINUTE, SIX, define, open, samples, send, series, slots};

fn send_one_sample(appender: &mut Appender, at: UnixMillis) {
    send(appender, samples(SeriesId(0), [(at.0, 1.0)]), at);
}

/// Regression: because of a damaged row of the head, the checkpoint set aside the partition that it
/// was writing, with all its documents, and later the whole head.
#[test]
fn a_damaged_row_of_the_head_affects_no_other_row_and_no_document() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = open(dir.path(), SIX);
    define(&mut appender, &[series("events", &[("host", "a")], Kind::Delta)], SIX);
    for minutes in [10, 65, 70] {
        let at = SIX.plus(minutes * MINUTE);
        send_one_sample(&mut appender, at);
        store.checkpoint(at).unwrap();
    }
    drop((store, appender));
    {
        let rows: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("rows/1m");
        let db = Database::open(dir.path().join("head.redb")).unwrap();
        let keys: Vec<_> = {
            let table = db.begin_read().unwrap().open_table(rows).unwrap();
            table.iter().unwrap().map(|entry| entry.unwrap().0.value()).collect()
        };
        assert_eq!(keys.len(), 2, "the slots of 07:05 and 07:10");
        let txn = db.begin_write().unwrap();
        txn.open_table(rows).unwrap().insert(keys[0], &b"abc"[..]).unwrap();
        txn.commit().unwrap();
    }
    let after_the_hour = SIX.plus(125 * MINUTE);
    let (store, mut appender) = open(dir.path(), after_the_hour);
    send_one_sample(&mut appender, after_the_hour);
    store.checkpoint(after_the_hour).unwrap();
    assert_eq!((store.damaged_documents(), store.damaged_partitions()), (1, vec![]));
    let slots = slots(&store, 0, SIX..after_the_hour.plus(MINUTE), SeriesId(0));
    let slots: Vec<_> = slots.iter().map(|slot| slot.start.0 - SIX.0).collect();
    // Only the damaged row contained the slot of 07:05.
    assert_eq!(slots, [10 * MINUTE, 70 * MINUTE, 125 * MINUTE]);
}

/// Regression: after a sample for a damaged row and a restart, the slot of 1m contained 1 sample
/// and the slot of 5m contained 2, without a note.
#[test]
fn a_hole_in_a_rewritten_row_survives_restarts_until_its_partition_is_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let at = SIX.plus(65 * MINUTE);
    {
        let (store, mut appender) = open(dir.path(), SIX);
        define(&mut appender, &[series("events", &[("host", "a")], Kind::Delta)], SIX);
        send_one_sample(&mut appender, at);
        store.checkpoint(at).unwrap();
    }
    {
        let rows: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("rows/1m");
        let db = Database::open(dir.path().join("head.redb")).unwrap();
        let txn = db.begin_write().unwrap();
        {
            let mut rows = txn.open_table(rows).unwrap();
            let key = rows.first().unwrap().unwrap().0.value();
            rows.insert(key, &b"abc"[..]).unwrap();
        }
        txn.commit().unwrap();
    }
    let minute = [at..at.plus(MINUTE)];
    {
        let (store, mut appender) = open(dir.path(), at);
        send_one_sample(&mut appender, at.plus(1000));
        store.checkpoint(at.plus(1000)).unwrap();
        assert_eq!(store.gaps()[0].holes[..1], minute);
    }
    let now = at.plus(MINUTE);
    let (store, _) = open(dir.path(), now);
    assert_eq!((store.gaps()[0].holes.as_slice(), store.damaged_in_all()), (&minute[..], 1));
    assert_eq!(slots(&store, 0, at..now, SeriesId(0))[0].cell.n, 1);
    drop(store);
    let report = verify(dir.path(), now, &mut |_| {}).unwrap();
    assert_eq!(report.faults, []);
    assert!(report.notes.iter().any(|note| note.contains("1m lacks samples from")), "{report:?}");
    // The hour is over: the hole moves with the cells.
    let after_the_hour = SIX.plus(125 * MINUTE);
    let (store, mut appender) = open(dir.path(), after_the_hour);
    send_one_sample(&mut appender, after_the_hour);
    store.checkpoint(after_the_hour).unwrap();
    drop((store, appender));
    let (store, _) = open(dir.path(), after_the_hour);
    assert_eq!(store.gaps()[0].holes, minute);
    let id = store
        .partitions()
        .into_iter()
        .find(|partition| partition.id.granularity.0 == 0)
        .unwrap()
        .id;
    assert!(store.drop_partition(id).unwrap());
    drop(store);
    assert_eq!(open(dir.path(), after_the_hour.plus(HOUR)).0.gaps()[0].holes, []);
}

#[test]
fn damaged_histograms_of_the_head_are_counted_apart_from_the_cells_with_the_same_key() {
    for (tables, damaged) in [(&["histograms/1m"][..], 1), (&["rows/1m", "histograms/1m"], 2)] {
        let dir = tempfile::tempdir().unwrap();
        let at = SIX.plus(65 * MINUTE);
        let (store, mut appender) = open(dir.path(), SIX);
        define(&mut appender, &[series("delays", &[], Kind::GaugeHistogram)], SIX);
        let mut histogram = Histogram::sketch();
        histogram.observe(2.0, 3.0);
        let mut batch = samples(SeriesId(0), []);
        batch.push_histogram(SeriesId(0), at, histogram);
        send(&mut appender, batch, at);
        store.checkpoint(at).unwrap();
        drop((store, appender));
        let db = Database::open(dir.path().join("head.redb")).unwrap();
        let txn = db.begin_write().unwrap();
        let keys = tables.iter().map(|name| {
            let table: TableDefinition<'_, u64, &[u8]> = TableDefinition::new(name);
            let mut table = txn.open_table(table).unwrap();
            let key = table.first().unwrap().unwrap().0.value();
            table.insert(key, &b"abc"[..]).unwrap();
            key
        });
        let keys: Vec<_> = keys.collect();
        assert!(keys.windows(2).all(|pair| pair[0] == pair[1]), "{keys:?}");
        txn.commit().unwrap();
        drop(db);
        let after_the_hour = SIX.plus(125 * MINUTE);
        let (store, _appender) = open(dir.path(), after_the_hour);
        store.checkpoint(after_the_hour).unwrap();
        assert_eq!(store.damaged_documents(), damaged);
        let mut holes = store.gaps()[0].holes.clone();
        // The documents and the head may name the same hole.
        holes.dedup();
        assert_eq!(holes, [at..at.plus(MINUTE)]);
        let counts = slots(&store, 0, SIX..after_the_hour, SeriesId(0));
        assert_eq!(counts.len(), 2 - damaged as usize, "sound counts remain");
    }
}

#[test]
fn cells_decoded_for_one_query_are_decoded_again_after_a_change_and_after_the_hour() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = open(dir.path(), SIX);
    let hosts: Vec<_> = (0..70).map(|host| format!("host-{host}")).collect();
    let infos = hosts.iter().map(|host| series("load", &[("host", host)], Kind::Gauge));
    let ids = define(&mut appender, &infos.collect::<Vec<_>>(), SIX);
    // A few series of many slots, and all series of a row.
    let queried = [&[ids[0], ids[69]][..], &ids[..64]];
    let mut expected = BTreeMap::<(SeriesId, i64), (u32, f64)>::new();
    for minute in 0..130_i64 {
        let now = SIX.plus(minute * MINUTE + 1000);
        let mut batch = AcceptedBatch::default();
        for (series, id) in ids.iter().enumerate() {
            // Each seventh sample is late.
            let late = if (minute + series as i64) % 7 == 0 { minute.min(11) } else { 0 };
            let at = now.minus(late * MINUTE);
            let value = (minute * 100) as f64 + series as f64;
            batch.series.push(*id);
            batch.times.push(at.0);
            batch.values.push(value);
            let slot = expected.entry((*id, at.0 / MINUTE * MINUTE)).or_default();
            *slot = (slot.0 + 1, slot.1 + value);
        }
        send(&mut appender, batch, now);
        if minute % 5 == 3 {
            store.checkpoint(now).unwrap();
        }
        for (of_series, minutes) in queried.iter().zip([[5, 30], [20, 125]]) {
            for length in minutes {
                let range = now.minus(length * MINUTE)..now;
                let view = store.view(GranularityIndex::FINEST, range, of_series).unwrap();
                for id in *of_series {
                    let seen = view.slots(*id).unwrap().into_iter();
                    let seen: Vec<_> =
                        seen.map(|slot| (slot.start.0, (slot.cell.n, slot.cell.sum))).collect();
                    let from = now.minus(length * MINUTE).0 / MINUTE * MINUTE;
                    let slots = expected.range((*id, from)..=(*id, i64::MAX));
                    let slots: Vec<_> = slots.map(|((_, at), cell)| (*at, *cell)).collect();
                    assert_eq!(seen, slots, "{id:?} {minute} {length}");
                }
            }
        }
    }
}
