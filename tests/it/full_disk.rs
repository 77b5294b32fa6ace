//! A checkpoint that cannot write the documents of one granularity.

use std::fs;

use granary::model::{Kind, SeriesId};

use crate::setup::{HOUR, MINUTE, SIX, define, open, samples, send, series, slots};

/// Regression: one granularity that could not be written held back the coarser ones and the
/// journal, until the memory of accepted samples was full.
#[test]
fn documents_that_cannot_be_written_hold_back_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = open(dir.path(), SIX);
    define(&mut appender, &[series("m", &[], Kind::Gauge)], SIX);
    let times = (0..24 * 60).map(|minute| (SIX.0 - minute * MINUTE, 1.0));
    send(&mut appender, samples(SeriesId(0), times), SIX);
    let counts = |level: usize| -> u32 {
        let range = SIX.minus(48 * HOUR)..SIX.plus(HOUR);
        slots(&store, level, range, SeriesId(0)).iter().map(|slot| slot.cell.n).sum()
    };
    // A file in place of the folder of minutes: none of their partitions can be created.
    let minutes = dir.path().join("partitions/1m");
    fs::create_dir_all(dir.path().join("partitions")).unwrap();
    fs::write(&minutes, "").unwrap();
    let now = SIX.plus(10 * MINUTE);
    let failed = store.checkpoint(now).unwrap_err();
    assert!(failed.file().starts_with("partitions/1m/"), "{}", failed.with_causes());
    assert!(dir.path().join("partitions/5m").is_dir(), "the next granularity has documents");
    assert!(!store.is_checkpoint_cut_short(), "the cells of minutes are in the head");
    assert_eq!([counts(0), counts(1), counts(3)], [24 * 60; 3]);
    store.checkpoint(now).unwrap_err();
    fs::remove_file(&minutes).unwrap();
    assert!(store.checkpoint(now).unwrap().documents > 0);
    assert!(minutes.is_dir());
    assert_eq!([counts(0), counts(1), counts(3)], [24 * 60; 3]);
}
