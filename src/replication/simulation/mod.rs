//! Random schedules of the real roles over a replica set in memory: late, lost and repeated
//! commands, lost answers, kills, a wiped disk, nodes that sleep, rollbacks, removed members, and
//! clocks that differ in speed.
//!
//! The protocol holds in all schedules, and each mutant fails in some; `directed` has the schedules
//! of three mutants that random ones miss. `GRANARY_SIM_HISTORIES` sets the number of schedules,
//! `GRANARY_SIM_SEED` replays one with its trace, and `GRANARY_SIM_MUTANT` (a name such as
//! `NoFence`) with a mutant.
#![allow(clippy::print_stderr, reason = "a replayed schedule prints its steps")]

mod checks;
mod directed;
mod leaving;
mod origins;
mod state;
mod world;

use world::World;

use crate::replication::mutants::{Mutant, switch};

/// The number of schedules in a default run. Their seeds are constant, so that a failure comes from
/// the change under test; with `GRANARY_SIM_HISTORIES`, seeds are random.
const SCHEDULES: u64 = 2_000;
const FIRST_SEED: u64 = 1;
/// The number of schedules in which each mutant must fail.
const MUTANT_SCHEDULES: u64 = 10_000;

/// The mutants, and the first word of the violation that each must show.
const MUTANTS: [(Mutant, &str); 10] = [
    (Mutant::NoFence, "LATE"),
    (Mutant::DuplicateIsOwn, "MINORITY"),
    (Mutant::SkipsUnknown, "DIFFERENT"),
    (Mutant::OwnCut, "EARLY"),
    (Mutant::SetsCut, "LOWER"),
    (Mutant::DeletesFirst, "DELETED"),
    (Mutant::LocalReads, "DIFFERENT"),
    (Mutant::TakesWithoutBeat, "STALE"),
    (Mutant::LeaseFromAnswer, "STALE"),
    (Mutant::NoMargin, "STALE"),
];

fn env_number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Runs schedules on all cores, and returns the failures that begin with a word, at most a few,
/// with their seeds; and the numbers of acknowledged batches, takeovers and seedings.
fn run(
    (mutant, word): (Option<Mutant>, &'static str),
    first: u64,
    count: u64,
    failures_max: usize,
) -> (Vec<(u64, String)>, [usize; 3]) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let run_share = move |thread: u64| {
        switch(mutant);
        let (mut failures, mut totals) = (Vec::new(), [0; 3]);
        for seed in (thread..count).step_by(threads as usize).map(|index| first.wrapping_add(index))
        {
            let mut world = World::new(seed, false);
            if let Some(violation) = world.run().filter(|text| text.starts_with(word)) {
                failures.push((seed, violation));
            }
            let checks = &world.checks;
            totals[0] += checks.acked();
            totals[1] += checks.takes as usize;
            totals[2] += checks.seeds as usize;
            if failures.len() >= failures_max {
                break;
            }
        }
        (failures, totals)
    };
    let (mut failures, mut totals) = (Vec::new(), [0; 3]);
    std::thread::scope(|scope| {
        let running: Vec<_> =
            (0..threads).map(|thread| scope.spawn(move || run_share(thread))).collect();
        for thread in running {
            let (thread_failures, thread_totals) = thread.join().unwrap();
            failures.extend(thread_failures);
            totals.iter_mut().zip(thread_totals).for_each(|(total, number)| *total += number);
        }
    });
    let [acked, takes, seeds] = totals;
    eprintln!(
        "{mutant:?}: {} failures in up to {count} schedules, {acked} batches acknowledged, \
         {takes} takeovers, {seeds} seeds{}",
        failures.len(),
        failures.first().map_or(String::new(), |(seed, text)| format!("; seed {seed}: {text}"))
    );
    (failures, totals)
}

#[test]
fn acknowledged_batches_are_on_all_replicas_once_under_any_schedule() {
    if let Some(seed) = env_number("GRANARY_SIM_SEED") {
        let name = std::env::var("GRANARY_SIM_MUTANT").unwrap_or_default();
        let named = MUTANTS.into_iter().find(|(mutant, _)| format!("{mutant:?}") == name);
        switch(named.map(|(mutant, _)| mutant));
        let mut world = World::new(seed, true);
        let violation = world.run();
        eprintln!("{}\n{violation:?}", world.trace.unwrap_or_default().join("\n"));
        assert_eq!(violation, None);
        return;
    }
    let requested = env_number("GRANARY_SIM_HISTORIES");
    let first = requested.map_or(FIRST_SEED, |_| fastrand::u64(..));
    let (failures, totals) = run((None, ""), first, requested.unwrap_or(SCHEDULES), 3);
    assert!(failures.is_empty(), "replay one with GRANARY_SIM_SEED: {failures:?}");
    assert!(requested.is_some() || !totals.contains(&0), "{totals:?}");
}

#[test]
fn each_mutant_fails_in_some_schedule() {
    let holding: Vec<_> = MUTANTS
        .into_iter()
        .filter(|(mutant, word)| {
            run((Some(*mutant), word), FIRST_SEED, MUTANT_SCHEDULES, 1).0.is_empty()
        })
        .collect();
    assert!(holding.is_empty(), "no schedule shows why these rules are needed: {holding:?}");
}
