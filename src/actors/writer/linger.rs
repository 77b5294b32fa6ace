//! The linger time of a group: the wait for more commands before the commit.
//!
//! A commit writes and syncs at least seven pages, whatever it contains. Commands that arrive
//! within a few milliseconds should share a commit. But waiting pays only where commands arrive:
//! senders that wait for their responses send nothing meanwhile. The linger time adapts to how many
//! commands arrive while waiting.
//!
//! Must never know: the content of commands.

use std::time::Duration;

/// The short wait, for commands that the last acknowledgements released. With parallel requests,
/// commits become fewer and larger. A lone sender never waits.
const SHORT_WAIT: Duration = Duration::from_millis(1);
/// The long wait, used while it pays.
const LONG_WAIT: Duration = Duration::from_millis(8);
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
    /// The number of commands of the open group after the short wait, if the group waits longer.
    commands_before: Option<usize>,
}

impl Linger {
    /// Returns the remaining time for which an open group of this size and age waits for its next
    /// command; `None` means that it only takes commands that are already queued.
    pub(super) fn wait(
        &mut self,
        commands: usize,
        samples: usize,
        age: Duration,
    ) -> Option<Duration> {
        let remaining =
            |linger: Duration| linger.checked_sub(age).filter(|remaining| !remaining.is_zero());
        if samples < SAMPLES_ENOUGH && self.is_worth_it(commands) {
            // Commands within this time would have arrived in a short wait, too.
            if age < SHORT_WAIT || self.commands_before.is_none() {
                self.commands_before = Some(commands);
            }
            return remaining(LONG_WAIT);
        }
        if commands < self.last_group { remaining(SHORT_WAIT) } else { None }
    }

    /// Returns true when this group should wait long.
    fn is_worth_it(&self, commands: usize) -> bool {
        let is_tried = || commands > 1 && self.since_try >= TRY_EVERY;
        self.commands_before.is_some() || self.gain >= GAIN_MIN || is_tried()
    }

    /// Updates the averages after a group is closed.
    pub(super) fn note(&mut self, commands: usize) {
        self.last_group = commands;
        match self.commands_before.take() {
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
    /// with `samples_each` samples; returns the number of commands and the wait.
    fn gather(linger: &mut Linger, arrivals: &[u64], samples_each: usize) -> (usize, Duration) {
        let (mut commands, mut samples) = (1, samples_each);
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
            samples += samples_each;
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
        let long_waits = waits.filter(|wait| *wait > SHORT_WAIT).count();
        assert!((90..=100).contains(&long_waits), "{long_waits}");
    }

    #[test]
    fn groups_wait_for_a_steady_flow_of_requests_until_they_are_large() {
        let mut linger = Linger::default();
        let requests: Vec<u64> = (0..10).map(|n| n * 2300).collect();
        let mut last = (0, Duration::ZERO);
        for _ in 0..4000 {
            last = gather(&mut linger, &requests, 100);
        }
        assert_eq!(last, (5, LONG_WAIT));
        assert_eq!(gather(&mut linger, &requests, 1000), (3, Duration::from_micros(2300)));
        // When the other senders stop, the remaining sender waits a few times more.
        let waits = (0..100).map(|_| gather(&mut linger, &[], 100).1);
        assert!(waits.filter(|wait| !wait.is_zero()).count() < 8);
    }
}
