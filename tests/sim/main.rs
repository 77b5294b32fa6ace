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

use history::{History, Tally};

/// As in the daemon; glibc's would take a quarter of the time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Histories in an ordinary run.
const HISTORIES: u64 = 10_000;

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
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let share = |thread: u64| {
        let mut tally = Tally::default();
        for index in (thread..count).step_by(threads as usize) {
            let seed = first.wrapping_add(index);
            let outcome = std::panic::catch_unwind(|| History::new(seed).run()).ok();
            let replay = || panic!("history {seed} failed; replay it with GRANARY_SIM_SEED={seed}");
            tally.add(&outcome.unwrap_or_else(replay));
        }
        tally
    };
    let mut tally = Tally::default();
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|one| scope.spawn(move || share(one))).collect();
        for thread in running {
            tally.add(&thread.join().unwrap());
        }
    });
    eprintln!("{count} histories from seed {first}: {tally:?}");
    let happened = [
        tally.acknowledged,
        tally.duplicates,
        tally.failed_writes,
        tally.power_cuts,
        tally.failed_checkpoints,
        tally.refused_samples,
        tally.new_epochs,
        tally.dropped_partitions,
        tally.deleted,
        tally.renamed,
    ];
    assert!(happened.iter().all(|times| *times > 0), "something never happened");
}
