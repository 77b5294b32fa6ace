//! A query is run again when what stopped it is over by the time it is told.
//!
//! So a write that failed, which closes its file to whoever reads it, breaks no query under way,
//! and the query that meets damage first has the answer that the next one would have. Must never
//! know: what is asked.

use crate::query::Budget;

/// Runs of a query, at most: each may meet one more damaged place.
const RUNS_MAX: usize = 8;

/// Runs a query until it has an answer, or a fault that would come again. What a run took of the
/// memory is given back before the next.
///
/// # Errors
/// That of the last run.
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
    fn a_fault_that_is_settled_is_met_by_nobody_and_any_other_is_told_at_once() {
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
