//! The queries for profiles in a round.

use std::time::Duration;

use granary_agent_kit::Stopwatch;

use crate::{connection::Fault, target::Target};

/// The interval of queries for profiles.
const INTERVAL_MS: i64 = 10_000;
/// The maximum share of a round's time limit for profiles.
const SHARE: f64 = 0.1;
/// The minimum time limit of a query.
const LIMIT_MIN: Duration = Duration::from_millis(100);
/// The number of databases without a profile that are tried in a round, since a profiler can be
/// turned on at any time.
const TRIES: usize = 5;

impl Target {
    /// Reads the documents that the profilers added since the last round.
    pub(crate) async fn query_profiles(
        &mut self,
        now_ms: i64,
        watch: Stopwatch,
    ) -> Result<(), Fault> {
        if now_ms < self.slow.operations_slow.next_ms {
            return Ok(());
        }
        self.slow.operations_slow.next_ms = now_ms.saturating_add(INTERVAL_MS);
        let started = watch.elapsed();
        let share = self.limits.timeout.mul_f64(SHARE);
        for database in self.slow.operations_slow.due(TRIES, now_ms) {
            let left = share.saturating_sub(watch.elapsed().saturating_sub(started));
            let Some(command) = self.slow.operations_slow.command(&database) else { continue };
            let Some(connection) = self.connection.as_mut().filter(|_| !left.is_zero()) else {
                break;
            };
            match connection.run_command_within(left.max(LIMIT_MIN), &database, command).await {
                Ok(response) => {
                    self.slow.operations_slow.note_response(&database, &response, now_ms);
                }
                Err(fault @ Fault::Refused(..)) => {
                    self.slow.operations_slow.note_refusal(&database, fault, now_ms);
                }
                Err(fault) => {
                    self.slow.operations_slow.end_round(now_ms);
                    return Err(fault);
                }
            }
        }
        self.slow.operations_slow.end_round(now_ms);
        Ok(())
    }
}
