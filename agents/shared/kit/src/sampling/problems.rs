//! The problems of sources. The start and the end of each problem are logged once, even when a
//! source fails intermittently.

use std::collections::BTreeMap;

use tracing::{info, warn};

/// The time without failures after which a problem has ended. A failure within this time continues
/// the problem.
const RECOVERY_MS: u64 = 120_000;

/// Current problems: for each failing object, the time of the last failure.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    last_failures: BTreeMap<String, i64>,
}

impl Problems {
    /// Updates the problems after the round at `now_ms` and logs the changes. Returns the numbers
    /// of new and ended problems.
    pub(crate) fn update(
        &mut self,
        failures: BTreeMap<String, String>,
        now_ms: i64,
    ) -> (usize, usize) {
        let mut started = 0;
        for (object, cause) in failures {
            if !self.last_failures.contains_key(&object) {
                started += 1;
                warn!(object, cause, "cannot read; skipped until it works again");
            }
            self.last_failures.insert(object, now_ms);
        }
        let before = self.last_failures.len();
        self.last_failures.retain(|object, last_ms| {
            let is_open = last_ms.abs_diff(now_ms) < RECOVERY_MS;
            if !is_open {
                info!(object, "can be read again");
            }
            is_open
        });
        (started, before - self.last_failures.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lasting_problem_is_logged_when_it_begins_and_when_it_ends() {
        let mut problems = Problems::default();
        let problem = || BTreeMap::from([("disk".to_owned(), "gone".to_owned())]);
        assert_eq!(problems.update(problem(), 0), (1, 0));
        assert_eq!(problems.update(problem(), 10_000), (0, 0));
        assert_eq!(problems.update(BTreeMap::new(), 20_000), (0, 0));
        assert_eq!(problems.update(BTreeMap::new(), 130_000), (0, 1));
        assert_eq!(problems.update(problem(), 140_000), (1, 0));
    }

    /// Regression: a target that answered every other time filled the log.
    #[test]
    fn an_intermittent_problem_is_logged_once() {
        let mut problems = Problems::default();
        let lines: usize = (0..1_000)
            .map(|round| {
                let failures =
                    (round % 3 == 0).then(|| ("target".to_owned(), format!("cause {round}")));
                let (started, ended) =
                    problems.update(failures.into_iter().collect(), round * 10_000);
                started + ended
            })
            .sum();
        assert_eq!(lines, 1);
    }
}
