//! A process killed between a write and its sync leaves data that the next process reads but that
//! is not on disk.

use std::sync::Arc;

use granary::{
    model::{AcceptedBatch, BatchNumber, Deduplication, Kind, SeriesId},
    store::Medium,
};

use crate::{
    faulty::FaultyMedium,
    setup::{HOUR, NOW, count, define, granularities, open_on, series},
};

#[test]
fn writes_of_a_killed_process_are_synced_before_they_are_reported() {
    let set = granularities(&[["1m", "1h", "6h", "12h"]]);
    let number = BatchNumber { sender: "agent".into(), epoch: 1, seq: 1 };
    let batch = AcceptedBatch {
        deduplication: Deduplication::ByNumber(number),
        series: vec![SeriesId(0)],
        times: vec![NOW.0],
        values: vec![1.0],
        ..AcceptedBatch::default()
    };
    let mut unsynced_records = 0;
    // An append is a write and a sync: each of them is held in half of the runs.
    for (seed, gate_after) in (0..60).map(|run| (run, run % 2)) {
        let medium = FaultyMedium::new(seed);
        let shared: Arc<dyn Medium> = Arc::new(medium.clone());
        let (store, mut appender) = open_on(shared.clone(), &set, NOW);
        define(&mut appender, &[series("m", &[], Kind::Gauge)], NOW);
        medium.close_gate(gate_after);
        let append = || appender.commit(&[], std::slice::from_ref(&batch), NOW).is_ok();
        std::thread::scope(|scope| {
            let append = scope.spawn(append);
            if medium.wait_at_gate() {
                medium.kill();
            }
            medium.open_gate();
            append.join().unwrap();
        });
        drop((store, appender));
        medium.kill();
        // The batch is sent again, and the power is cut after the answer.
        let (store, mut appender) = open_on(shared.clone(), &set, NOW);
        unsynced_records += u64::from(store.last_record() > 1);
        appender.commit(&[], std::slice::from_ref(&batch), NOW).unwrap();
        drop((store, appender));
        medium.power_up();
        let (store, _) = open_on(shared, &set, NOW);
        let range = NOW.minus(HOUR)..NOW.plus(HOUR);
        assert_eq!(count(&store, 0, range, SeriesId(0)), 1, "run {seed}, held at {gate_after}");
    }
    assert!(unsynced_records > 0, "no record was written and not synced");
}
