//! The head of the store beside its documents.

use granary::{
    model::{Kind, SeriesId, UnixMillis},
    store::Appender,
};
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};

use crate::setup::{MINUTE, SIX, define, open, samples, send, series, slots};

fn add(appender: &mut Appender, at: UnixMillis) {
    send(appender, samples(SeriesId(0), [(at.0, 1.0)]), at);
}

/// One damaged row of the head once made the checkpoint set aside the partition that it was
/// writing, with all its documents, and later the whole head.
#[test]
fn a_damaged_row_of_the_head_costs_no_other_and_no_document() {
    check_a_damaged_row(false);
}

#[test]
fn a_damaged_row_of_an_old_head_is_still_told_of_when_that_is_raised() {
    check_a_damaged_row(true);
}

fn check_a_damaged_row(is_old: bool) {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = open(dir.path(), SIX);
    define(&mut appender, &[series("events", &[("host", "a")], Kind::Delta)], SIX);
    for minutes in [10, 65, 70] {
        let at = SIX.plus(minutes * MINUTE);
        add(&mut appender, at);
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
        let name = if is_old { "cells/1m" } else { "rows/1m" };
        txn.open_table(rows).unwrap().remove(keys[0]).unwrap();
        let table: TableDefinition<'_, u64, &[u8]> = TableDefinition::new(name);
        txn.open_table(table).unwrap().insert(keys[0], &b"abc"[..]).unwrap();
        if is_old {
            let meta: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
            txn.open_table(meta).unwrap().insert("format_version", 6).unwrap();
        }
        txn.commit().unwrap();
    }
    let over = SIX.plus(125 * MINUTE);
    let (store, mut appender) = open(dir.path(), over);
    add(&mut appender, over);
    store.checkpoint(over).unwrap();
    assert_eq!((store.damaged_documents(), store.damaged_partitions()), (1, vec![]));
    let slots = slots(&store, 0, SIX..over.plus(MINUTE), SeriesId(0));
    let slots: Vec<_> = slots.iter().map(|slot| slot.start.0 - SIX.0).collect();
    // 07:05 was in that row only.
    assert_eq!(slots, [10 * MINUTE, 70 * MINUTE, 125 * MINUTE]);
}
