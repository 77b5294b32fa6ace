//! When a target is asked: each round while it answers, more seldom when it has not for a while.

/// A target that does not answer is asked each round for so long.
const DEAD_AFTER_MS: i64 = 60_000;
/// Then so often: a mongod, and a mongos.
const DEAD_EVERY_MS: i64 = 5 * 60_000;
const DEAD_ROUTER_EVERY_MS: i64 = 20 * 60_000;

/// Whether a target answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Polling {
    /// Since when it does not.
    failing_since: Option<i64>,
    next_ms: i64,
}

impl Polling {
    /// Whether it is asked at a time; a clock that stepped back far does not stop it.
    pub(crate) fn is_due(self, now_ms: i64) -> bool {
        now_ms >= self.next_ms || self.next_ms.saturating_sub(now_ms) > DEAD_ROUTER_EVERY_MS
    }

    /// It answered.
    pub(crate) fn answered(&mut self) {
        *self = Self::default();
    }

    /// It did not answer when it was asked at a time.
    pub(crate) fn failed(&mut self, now_ms: i64, is_router: bool) {
        let since = *self.failing_since.get_or_insert(now_ms);
        let is_dead = now_ms.saturating_sub(since) >= DEAD_AFTER_MS;
        let every_ms = if is_router { DEAD_ROUTER_EVERY_MS } else { DEAD_EVERY_MS };
        self.next_ms = if is_dead { now_ms.saturating_add(every_ms) } else { now_ms };
    }

    /// Whether it answered when it was asked last.
    pub(crate) fn is_up(self) -> bool {
        self.failing_since.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When a target is asked that answers from a time on, with a round every ten seconds.
    fn asked_at(is_router: bool, answers_from: i64, until: i64) -> Vec<i64> {
        let mut polling = Polling::default();
        let mut asked = Vec::new();
        for now in (0..until).step_by(10_000) {
            if polling.is_due(now) {
                asked.push(now / 1000);
                if now >= answers_from {
                    polling.answered();
                } else {
                    polling.failed(now, is_router);
                }
            }
        }
        asked
    }

    #[test]
    fn a_dead_mongod_is_asked_every_5_minutes_and_a_mongos_every_20() {
        assert_eq!(asked_at(false, i64::MAX, 700_000), [0, 10, 20, 30, 40, 50, 60, 360, 660]);
        assert_eq!(asked_at(true, i64::MAX, 1_300_000), [0, 10, 20, 30, 40, 50, 60, 1260]);
    }

    #[test]
    fn one_that_answers_again_is_asked_each_round() {
        let asked = asked_at(false, 300_000, 400_000);
        assert_eq!(asked, [0, 10, 20, 30, 40, 50, 60, 360, 370, 380, 390]);
    }

    #[test]
    fn a_clock_that_steps_back_does_not_stop_it() {
        let mut polling = Polling::default();
        polling.failed(10_000_000, false);
        polling.failed(10_060_000, false);
        assert!(!polling.is_due(10_100_000));
        assert!(polling.is_due(1_000_000));
    }
}
