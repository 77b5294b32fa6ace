//! The schedule of sampling and sending, as pure arithmetic.

use std::time::Duration;

/// The maximum delay between sampling and sending, which spreads the requests of a fleet.
const SEND_DELAY_MAX: Duration = Duration::from_secs(15);

/// Sampling times: the multiples of the interval on the wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Schedule {
    interval_ms: i64,
}

impl Schedule {
    /// Creates a schedule with this interval, at least one millisecond.
    pub(crate) fn new(interval: Duration) -> Self {
        Self { interval_ms: i64::try_from(interval.as_millis()).unwrap_or(i64::MAX).max(1) }
    }

    /// Returns the first tick after `now_ms`.
    pub(crate) fn next_after(self, now_ms: i64) -> i64 {
        (now_ms.div_euclid(self.interval_ms) + 1).saturating_mul(self.interval_ms)
    }

    /// Returns the tick that a sampler serves when it wakes at `now_ms` for `tick_ms`: the newest
    /// due tick. Missed ticks are skipped, so that no burst follows.
    pub(crate) fn due(self, tick_ms: i64, now_ms: i64) -> i64 {
        tick_ms.max(now_ms.div_euclid(self.interval_ms).saturating_mul(self.interval_ms))
    }

    /// Returns the number of ticks between two consecutive samples, or zero when the clock stepped
    /// back.
    pub(crate) fn missed_between(self, last_ms: i64, this_ms: i64) -> u64 {
        let ticks = this_ms.saturating_sub(last_ms).div_euclid(self.interval_ms);
        u64::try_from(ticks.saturating_sub(1)).unwrap_or(0)
    }

    /// Returns the delay of this agent between sampling and sending: constant for an agent, spread
    /// evenly over a fleet, at most half the interval.
    pub(crate) fn send_delay(self, agent_id: &str) -> Duration {
        let span = (self.interval_ms.unsigned_abs() / 2).min(SEND_DELAY_MAX.as_millis() as u64);
        Duration::from_millis(fnv1a(agent_id) % span.max(1))
    }
}

/// Returns the FNV-1a hash, which is stable across builds, unlike the standard library's hasher.
fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN: Duration = Duration::from_secs(10);

    #[test]
    fn ticks_are_multiples_of_the_interval_and_strictly_later() {
        let schedule = Schedule::new(TEN);
        assert_eq!(schedule.next_after(0), 10_000);
        assert_eq!(schedule.next_after(9_999), 10_000);
        assert_eq!(schedule.next_after(10_000), 20_000);
        assert_eq!(schedule.next_after(-1), 0);
    }

    #[test]
    fn a_late_wake_samples_the_newest_due_tick() {
        let schedule = Schedule::new(TEN);
        assert_eq!(schedule.due(20_000, 20_003), 20_000);
        assert_eq!(schedule.due(20_000, 29_999), 20_000);
        assert_eq!(schedule.due(20_000, 65_000), 60_000);
        assert_eq!(schedule.due(20_000, 19_999), 20_000);
    }

    #[test]
    fn ticks_between_two_samples_are_missed() {
        let schedule = Schedule::new(TEN);
        assert_eq!(schedule.missed_between(20_000, 30_000), 0);
        assert_eq!(schedule.missed_between(20_000, 60_000), 3);
        assert_eq!(schedule.missed_between(60_000, 20_000), 0, "a clock step back misses nothing");
    }

    #[test]
    fn send_delay_is_stable_bounded_and_spread() {
        let schedule = Schedule::new(TEN);
        let delays: Vec<_> = (0..1000).map(|n| schedule.send_delay(&format!("web{n}"))).collect();
        assert_eq!(delays[7], schedule.send_delay("web7"));
        assert!(delays.iter().all(|delay| *delay < Duration::from_secs(5)));
        let early = delays.iter().filter(|delay| **delay < Duration::from_millis(2500)).count();
        assert!((350..650).contains(&early), "{early} of 1000 in the first half");
        let long = Schedule::new(Duration::from_mins(10));
        assert!((0..1000).all(|n| long.send_delay(&format!("web{n}")) < SEND_DELAY_MAX));
    }

    #[test]
    fn the_shortest_interval_does_not_divide_by_zero() {
        let schedule = Schedule::new(Duration::ZERO);
        assert_eq!(schedule.next_after(5), 6);
        assert_eq!(schedule.send_delay("a"), Duration::ZERO);
    }
}
