//! Retries of queries after transient errors.
//!
//! A failed write closes its file for all readers, so that running queries fail once. The first
//! query that reads a damaged place fails too; the damage is then recorded, and the next query
//! succeeds. Must never know: what is queried.

use crate::query::Budget;

/// Maximum number of runs of a query. Each run may find another damaged place.
const RUNS_MAX: usize = 8;

/// Runs a query until it succeeds, or fails with an error that is not transient. The memory of a
/// run is released before the next run.
///
/// # Errors
/// The error of the last run.
pub fn run_with_retries<T, E>(
    budget: &Budget,
    mut run: impl FnMut() -> Result<T, E>,
    is_transient: impl Fn(&E) -> bool,
) -> Result<T, E> {
    let mut outcome = run();
    for _ in 1..RUNS_MAX {
        if !outcome.as_ref().is_err_and(&is_transient) {
            break;
        }
        budget.shrink_to(0);
        outcome = run();
    }
    outcome
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn transient_errors_are_retried_and_other_errors_are_returned_at_once() {
        let check = |faults: &[&'static str], runs: usize, expected| {
            let run = Cell::new(0);
            let outcome = run_with_retries(
                &Budget::UNLIMITED,
                || {
                    run.set(run.get() + 1);
                    faults.get(run.get() - 1).map_or(Ok(()), |fault| Err(*fault))
                },
                |fault| *fault == "transient",
            );
            assert_eq!((outcome, run.get()), (expected, runs));
        };
        check(&[], 1, Ok(()));
        check(&["transient", "transient"], 3, Ok(()));
        check(&["transient", "lasting"], 2, Err("lasting"));
        check(&["lasting"], 1, Err("lasting"));
        check(&["transient"; 9], RUNS_MAX, Err("transient"));
    }
}
