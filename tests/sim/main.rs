//! Simulation: seeded histories of senders, faults and restarts against an oracle that knows what
//! was acknowledged.
//!
//! Invariants: every acknowledged sample is counted exactly once at every granularity, an
//! unacknowledged one at most once, and granularities agree. `GRANARY_SIM_SEED` replays one
//! history, `GRANARY_SIM_HISTORIES` sets how many are run.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

#[path = "../support/faulty.rs"]
mod faulty;
mod history;

use history::History;

/// Histories in an ordinary run.
const HISTORIES: u64 = 500;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn acknowledged_samples_are_counted_exactly_once_whatever_fails() {
    if let Some(seed) = number("GRANARY_SIM_SEED") {
        History::new(seed).run();
        return;
    }
    let count = number("GRANARY_SIM_HISTORIES").unwrap_or(HISTORIES);
    let first = fastrand::u64(..);
    let mut tally = history::Tally::default();
    for index in 0..count {
        let seed = first.wrapping_add(index);
        let outcome = std::panic::catch_unwind(|| History::new(seed).run()).ok();
        let replay = || panic!("history {seed} failed; replay it with GRANARY_SIM_SEED={seed}");
        tally.add(&outcome.unwrap_or_else(replay));
    }
    eprintln!("{count} histories from seed {first}: {tally:?}");
    assert!(tally.power_cuts > 0 && tally.failed_writes > 0 && tally.acknowledged > 0);
}
