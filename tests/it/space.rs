//! Space that is not needed any more is given back while the daemon runs.

use granary::{
    model::{AcceptedBatch, Kind, SeriesId},
    store::Store,
};

use crate::setup::{SECOND, SIX, define, open, send, series};

/// 40 records of 100,000 samples each, in the last minutes before `SIX`.
const RECORDS: i64 = 40;
const SAMPLES: usize = 100_000;
const MIB: u64 = 1 << 20;

fn journal_after_a_checkpoint(store: &Store) -> u64 {
    store.checkpoint(SIX).unwrap();
    store.journal_bytes()
}

#[test]
fn a_checkpoint_gives_back_what_the_journal_does_not_need() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = open(dir.path(), SIX);
    define(&mut appender, &[series("m", &[], Kind::Gauge)], SIX);
    for record in 0..RECORDS {
        let at = SIX.0 - record * SECOND;
        let batch = AcceptedBatch {
            series: vec![SeriesId(0); SAMPLES],
            times: vec![at],
            values: (0..SAMPLES).map(|value| value as f64).collect(),
            ..AcceptedBatch::default()
        };
        send(&mut appender, batch, SIX);
    }
    let before = store.journal_bytes();
    assert!(before > 30 * MIB, "{before}");
    let after = journal_after_a_checkpoint(&store);
    assert!(after < 5 * MIB, "{before} bytes before, {after} after");
    drop((store, appender));
    let (store, _) = open(dir.path(), SIX);
    assert!(journal_after_a_checkpoint(&store) < 5 * MIB);
}
