//! Simulation: seeded histories of senders, faults and restarts, compared with an oracle that knows
//! the acknowledged batches.
//!
//! Invariants: every acknowledged sample is counted exactly once at every granularity, an
//! unacknowledged sample at most once, each slot contains the aggregate of its samples, and every
//! answer equals the answer of the oracle. `GRANARY_SIM_SEED` replays one history,
//! `GRANARY_SIM_HISTORIES` sets the number of histories.
#![allow(clippy::print_stderr, reason = "a replayed history prints its steps")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot continue has failed")]

mod clock;
#[path = "../support/counters.rs"]
#[expect(dead_code, reason = "the oracle of tests/it uses more of it")]
mod counters;
mod damage;
mod erased;
#[path = "../support/faulty/mod.rs"]
mod faulty;
mod format_upgrade;
mod histograms;
mod history;
mod levels;
#[path = "../support/log_conformance.rs"]
mod log_conformance;
mod logs;
mod lowered;
mod meanwhile;
#[path = "../support/memory_log.rs"]
mod memory_log;
mod objects;
mod rebuilt;
mod reloads;
mod replaced;
mod replicas;
#[path = "../support/rounds.rs"]
mod rounds;
mod rules;
mod senders;
#[path = "../support/setup.rs"]
#[expect(dead_code, reason = "the tests of tests/it use more of it")]
mod setup;
mod shells;
mod snapshots;
mod stages;
mod tally;
mod unsynced;
mod upkeep;
mod world;

use history::History;
use tally::Tally;

/// The allocator of the daemon; with the allocator of glibc, allocation takes a quarter of the
/// time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The number of histories in a default run. Their seeds are constant, so that a failure comes from
/// the change under test; with `GRANARY_SIM_HISTORIES`, seeds are random.
const HISTORIES: u64 = 5_000;
/// The seed of the first history in a default run.
const FIRST_SEED: u64 = 15_785_805_091_343_651_900;
/// Runs with fewer histories need not reach every kind of event.
const HISTORIES_THAT_REACH_ALL: u64 = 2_000;
/// The maximum number of histories per reload while batches are sent, on average.
const HISTORIES_PER_RELOAD: u64 = 10;
/// A thread stops after this many failures.
const FAILURES_MAX: usize = 5;

fn env_number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn acknowledged_samples_are_counted_exactly_once_under_any_fault() {
    if let Some(seed) = env_number("GRANARY_SIM_SEED") {
        eprintln!("{}", History::new(seed, true).run());
        return;
    }
    let requested = env_number("GRANARY_SIM_HISTORIES");
    let count = requested.unwrap_or(HISTORIES);
    let first = requested.map_or(FIRST_SEED, |_| fastrand::u64(..));
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let run_share = |thread: u64| {
        let (mut tally, mut failed) = (Tally::default(), Vec::new());
        for index in (thread..count).step_by(threads as usize) {
            let seed = first.wrapping_add(index);
            let outcome = std::panic::catch_unwind(|| History::new(seed, false).run());
            if let Ok(history_tally) = outcome {
                tally.add(&history_tally);
            } else {
                eprintln!("history {seed} failed");
                failed.push(seed);
            }
            if failed.len() == FAILURES_MAX {
                break;
            }
        }
        (tally, failed)
    };
    let (mut tally, mut failed) = (Tally::default(), Vec::new());
    std::thread::scope(|scope| {
        let running: Vec<_> =
            (0..threads).map(|thread| scope.spawn(move || run_share(thread))).collect();
        for thread in running {
            let (thread_tally, thread_failed) = thread.join().unwrap();
            tally.add(&thread_tally);
            failed.extend(thread_failed);
        }
    });
    eprintln!("{count} histories from seed {first}:\n{tally}");
    assert!(failed.is_empty(), "histories failed; replay one with GRANARY_SIM_SEED: {failed:?}");
    let reloads = tally.number("reloads");
    eprintln!("{reloads} reloads between the batches of {count} histories");
    assert!(reloads >= count / HISTORIES_PER_RELOAD, "only {reloads} reloads");
    let missing = tally.missing();
    assert!(count < HISTORIES_THAT_REACH_ALL || missing.is_empty(), "never happened: {missing:?}");
}
