//! The linger time of a group: the wait for more commands before the commit.
//!
//! A commit writes and syncs at least seven pages, whatever it contains. Commands that arrive
//! within a few milliseconds should share one. But waiting pays only where commands arrive: senders
//! that wait for their responses send nothing meanwhile. The linger time adapts to how many
//! commands arrive while waiting.
//!
//! Must never know: the content of commands.

use std::time::Duration;

/// The wait for commands that the last acknowledgements released, when requests arrive in parallel:
/// fewer, larger commits. A lone sender never waits.
const SHORT: Duration = Duration::from_millis(1);
/// The wait where a longer one pays.
const LONG: Duration = Duration::from_millis(8);
/// The number of samples above which a commit is dominated by its data pages, so that waiting does
/// not pay.
const SAMPLES_ENOUGH: usize = 2048;
/// The average number of commands that must arrive for a long wait to pay.
const GAIN_MIN: f64 = 2.0;
/// The weight of one wait in the average.
const WEIGHT: f64 = 0.125;
/// The number of groups after which a long wait is tried although it did not pay.
const TRY_EVERY: u32 = 128;

/// The averages of past waits.
#[derive(Debug, Default)]
pub(super) struct Linger {
    last_group: usize,
    /// The average number of commands that arrived in a long wait.
    gain: f64,
    since_try: u32,
    /// The number of commands of the open group after the short wait, if it waits longer.
    waiting_since: Option<usize>,
}

impl Linger {
    /// Returns the remaining time for which an open group of this size and age waits for its next
    /// command; `None` means that it only takes commands that are already queued.
    pub(super) fn wait(
        &mut self,
        commands: usize,
        samples: usize,
        begun: Duration,
    ) -> Option<Duration> {
        let left = |linger: Duration| linger.checked_sub(begun).filter(|left| !left.is_zero());
        if samples < SAMPLES_ENOUGH && self.is_worth_it(commands) {
            // Commands within this time would have arrived in a short wait, too.
            if begun < SHORT || self.waiting_since.is_none() {
                self.waiting_since = Some(commands);
            }
            return left(LONG);
        }
        if commands < self.last_group { left(SHORT) } else { None }
    }

    /// Returns true when this group should wait long.
    fn is_worth_it(&self, commands: usize) -> bool {
        let is_tried = || commands > 1 && self.since_try >= TRY_EVERY;
        self.waiting_since.is_some() || self.gain >= GAIN_MIN || is_tried()
    }

    /// Updates the averages after a group is closed.
    pub(super) fn note(&mut self, commands: usize) {
        self.last_group = commands;
        match self.waiting_since.take() {
            Some(before) => {
                let gained = commands.saturating_sub(before) as f64;
                self.gain += (gained - self.gain) * WEIGHT;
                self.since_try = 0;
            }
            None => self.since_try = self.since_try.saturating_add(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates a group whose other commands arrive at these microseconds after the first, each
    /// with `of_each` samples; returns the number of commands and the wait.
    fn gather(linger: &mut Linger, arrivals: &[u64], of_each: usize) -> (usize, Duration) {
        let (mut commands, mut samples) = (1, of_each);
        let mut arrivals = arrivals.iter().copied().map(Duration::from_micros).peekable();
        let mut now = Duration::ZERO;
        loop {
            let until = match arrivals.peek() {
                Some(at) if *at <= now => *at,
                _ => now + linger.wait(commands, samples, now).unwrap_or_default(),
            };
            now = now.max(arrivals.peek().map_or(until, |at| until.min(*at)));
            if arrivals.next_if(|at| *at <= until).is_none() {
                break;
            }
            commands += 1;
            samples += of_each;
        }
        linger.note(commands);
        (commands, now)
    }

    #[test]
    fn a_lone_sender_never_waits() {
        let mut linger = Linger::default();
        for _ in 0..10_000 {
            assert_eq!(gather(&mut linger, &[], 100), (1, Duration::ZERO));
        }
    }

    #[test]
    fn senders_that_wait_for_their_answers_seldom_wait_for_others() {
        let mut linger = Linger::default();
        let waits = (0..12_800).map(|_| gather(&mut linger, &[0, 100, 200], 100).1);
        let long = waits.filter(|wait| *wait > SHORT).count();
        assert!((90..=100).contains(&long), "{long}");
    }

    #[test]
    fn where_requests_keep_coming_groups_wait_for_them_until_they_are_large() {
        let mut linger = Linger::default();
        let coming: Vec<u64> = (0..10).map(|n| n * 2300).collect();
        let mut last = (0, Duration::ZERO);
        for _ in 0..4000 {
            last = gather(&mut linger, &coming, 100);
        }
        assert_eq!(last, (5, LONG));
        assert_eq!(gather(&mut linger, &coming, 1000), (3, Duration::from_micros(2300)));
        // After the others have left, the remaining sender waits a few times more.
        let waits = (0..100).map(|_| gather(&mut linger, &[], 100).1);
        assert!(waits.filter(|wait| !wait.is_zero()).count() < 8);
    }
}
