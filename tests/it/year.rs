//! A fleet with changing hosts over a long time: once every retention is reached, nothing grows.
//! `benches/year.rs` does the same with 10,000 series for a year.

use std::collections::BTreeMap;

use granary::model::UnixMillis;

use crate::{
    fleet::{Run, Simulation, sizes},
    setup::{HOUR, MINUTE, granularities},
};

/// 2026-09-12T00:00:00Z
const START: UnixMillis = UnixMillis(1_789_171_200_000);

#[test]
fn nothing_grows_after_every_retention_is_reached_although_hosts_change() {
    let run = Run {
        set: granularities(&[["10m", "1h", "2h", "4h"], ["1h", "4h", "4h", "12h"]]),
        hosts: 8,
        metrics: 25,
        interval_ms: 10 * MINUTE,
        samples_a_checkpoint: 3,
        renewal_ms: 2 * HOUR,
    };
    let dir = tempfile::tempdir().unwrap();
    let mut simulation = Simulation::new(dir.path(), run, START);
    let settled = simulation.run.steady_after_ms();
    // The maximum of each number, before and after a time.
    let mut most = [BTreeMap::new(), BTreeMap::new()];
    while simulation.now.0 < START.0 + settled + 24 * HOUR {
        simulation.step();
        let since = simulation.now.0 - START.0 - settled;
        if since >= 0 {
            for (what, size) in sizes(&simulation.store, dir.path()) {
                let most = most[usize::from(since >= 12 * HOUR)].entry(what).or_default();
                *most = size.max(*most);
            }
        }
    }
    let [before, after] = most;
    // Ids are not reused: for each id, only an entry in these tables remains.
    assert_eq!(after["ids"] - before["ids"], 6 * 25);
    let is_flat = |what: &str| after[what] <= before[what] + before[what] / 20;
    let per_id = ["ids", "dictionary", "states", "times_seen", "journal", "senders"];
    let flat = before.keys().filter(|what| !per_id.contains(what));
    let grown: Vec<_> = flat.filter(|what| !is_flat(what)).collect();
    assert!(grown.is_empty(), "{grown:?} grew: {before:?}, then {after:?}");
    let known = simulation.store.dictionary().len();
    let grown = |what: &str| after[what] - before[what];
    // The table doubles once when entries of removed keys fill it; the time depends on the hash
    // seed.
    let doubled = 512 * (size_of::<u32>() as u64 + 1);
    let is_of_places =
        grown("dictionary") <= 32 * 6 * 25 + doubled && grown("states") <= 40 * 6 * 25;
    assert!(is_of_places, "{before:?}, then {after:?}");
    // Each host present within the longest retention, plus one partition, has 25 series.
    assert!(known <= (8 + 8 + 2) * 25, "{known}");
    let (store, _) = simulation.restart(dir.path());
    assert_eq!(store.dictionary().len(), known);
}
