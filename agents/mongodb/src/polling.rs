//! The schedule of a target: it is sampled in every round, and less often after a minute of
//! silence.

/// The time for which a target that does not answer is still sampled in every round.
const SILENT_AFTER_MS: i64 = 60_000;
/// The sampling intervals of a silent mongod and a silent mongos after that time.
const SILENT_MONGOD_INTERVAL_MS: i64 = 5 * 60_000;
const SILENT_ROUTER_INTERVAL_MS: i64 = 20 * 60_000;

/// The polling state of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Polling {
    /// The start of the silence.
    failing_since: Option<i64>,
    next_ms: i64,
}

impl Polling {
    /// Returns true when the target is sampled at this time. After a large step back of the clock,
    /// a target is sampled at once.
    pub(crate) fn is_due(self, now_ms: i64) -> bool {
        now_ms >= self.next_ms || self.next_ms.saturating_sub(now_ms) > SILENT_ROUTER_INTERVAL_MS
    }

    /// Records a response.
    pub(crate) fn note_response(&mut self) {
        *self = Self::default();
    }

    /// Records a missing response.
    pub(crate) fn note_failure(&mut self, now_ms: i64, is_router: bool) {
        let since = *self.failing_since.get_or_insert(now_ms);
        let is_silent = now_ms.saturating_sub(since) >= SILENT_AFTER_MS;
        let interval_ms =
            if is_router { SILENT_ROUTER_INTERVAL_MS } else { SILENT_MONGOD_INTERVAL_MS };
        self.next_ms = if is_silent { now_ms.saturating_add(interval_ms) } else { now_ms };
    }

    /// Returns true when the last sample was answered.
    pub(crate) fn is_up(self) -> bool {
        self.failing_since.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the seconds at which a target is sampled when rounds run every ten seconds. The
    /// target answers from `answers_from` on.
    fn sampled_seconds(is_router: bool, answers_from: i64, end_ms: i64) -> Vec<i64> {
        let mut polling = Polling::default();
        let mut sampled = Vec::new();
        for now in (0..end_ms).step_by(10_000) {
            if polling.is_due(now) {
                sampled.push(now / 1000);
                if now >= answers_from {
                    polling.note_response();
                } else {
                    polling.note_failure(now, is_router);
                }
            }
        }
        sampled
    }

    #[test]
    fn a_silent_mongod_is_sampled_every_5_minutes_and_a_mongos_every_20() {
        assert_eq!(
            sampled_seconds(false, i64::MAX, 700_000),
            [0, 10, 20, 30, 40, 50, 60, 360, 660]
        );
        assert_eq!(sampled_seconds(true, i64::MAX, 1_300_000), [0, 10, 20, 30, 40, 50, 60, 1260]);
    }

    #[test]
    fn a_target_that_answers_again_is_sampled_in_every_round() {
        let sampled = sampled_seconds(false, 300_000, 400_000);
        assert_eq!(sampled, [0, 10, 20, 30, 40, 50, 60, 360, 370, 380, 390]);
    }

    #[test]
    fn a_step_back_of_the_clock_does_not_stop_sampling() {
        let mut polling = Polling::default();
        polling.note_failure(10_000_000, false);
        polling.note_failure(10_060_000, false);
        assert!(!polling.is_due(10_100_000));
        assert!(polling.is_due(1_000_000));
    }
}
