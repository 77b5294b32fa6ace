//! Retries of queries whose error no longer exists by the time it would be reported.
//!
//! For example, a failed write closes its file for all readers; a running query then succeeds when
//! it is repeated. The same applies to a query that is the first to meet damage. Must never know:
//! what is queried.

use crate::query::Budget;

/// Maximum number of runs. Each run may meet another damaged place.
const RUNS_MAX: usize = 8;

/// Runs a query until it succeeds or fails with an error that a retry would not fix. The memory of
/// a run is released before the next run.
///
/// # Errors
/// The error of the last run.
pub fn run_until_settled<T, E>(
    budget: &Budget,
    mut run: impl FnMut() -> Result<T, E>,
    is_settled: impl Fn(&E) -> bool,
) -> Result<T, E> {
    let mut outcome = run();
    for _ in 1..RUNS_MAX {
        if !outcome.as_ref().is_err_and(&is_settled) {
            break;
        }
        budget.keep(0);
        outcome = run();
    }
    outcome
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn settled_errors_are_retried_and_others_are_returned_at_once() {
        let check = |faults: &[&'static str], runs: usize, expected| {
            let run = Cell::new(0);
            let outcome = run_until_settled(
                &Budget::UNLIMITED,
                || {
                    run.set(run.get() + 1);
                    faults.get(run.get() - 1).map_or(Ok(()), |fault| Err(*fault))
                },
                |fault| *fault == "settled",
            );
            assert_eq!((outcome, run.get()), (expected, runs));
        };
        check(&[], 1, Ok(()));
        check(&["settled", "settled"], 3, Ok(()));
        check(&["settled", "lasting"], 2, Err("lasting"));
        check(&["lasting"], 1, Err("lasting"));
        check(&["settled"; 9], RUNS_MAX, Err("settled"));
    }
}
