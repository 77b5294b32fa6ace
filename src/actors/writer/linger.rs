//! The time that a group waits for more commands before it is committed.
//!
//! A commit writes seven pages or more and syncs them, whatever it holds. So what comes within a few
//! milliseconds is to share one, but only where something comes: senders that wait for their
//! answers before they send again, send nothing meanwhile. How many come is learned by waiting.
//!
//! Must never know: what the commands are.

use std::time::Duration;

/// When requests come side by side, a group waits this long for those that the last
/// acknowledgements set free: fewer, larger commits. A lone sender never waits.
const SHORT: Duration = Duration::from_millis(1);
/// A group waits this long where that pays.
const LONG: Duration = Duration::from_millis(8);
/// With so many samples a commit's pages are theirs, and no group waits for more.
const SAMPLES_ENOUGH: usize = 2048;
/// To wait long pays when so many commands come meanwhile, on average.
const GAIN_MIN: f64 = 2.0;
/// The weight of one wait in that average.
const WEIGHT: f64 = 0.125;
/// Where it does not pay, one of so many groups of several commands waits all the same, to see.
const TRY_EVERY: u32 = 128;

/// Averages that past waits gave.
#[derive(Debug, Default)]
pub(super) struct Linger {
    last_group: usize,
    /// Commands that came in a long wait, on average.
    gain: f64,
    since_try: u32,
    /// Commands of the open group when it had waited short, if it waits long.
    waiting_since: Option<usize>,
}

impl Linger {
    /// The remaining time that an open group of this size and age waits for
    /// its next command. Without any, it takes only what is there.
    pub(super) fn wait(
        &mut self,
        commands: usize,
        samples: usize,
        begun: Duration,
    ) -> Option<Duration> {
        let left = |linger: Duration| linger.checked_sub(begun).filter(|left| !left.is_zero());
        if samples < SAMPLES_ENOUGH && self.is_worth_it(commands) {
            // Those that come so soon would have come in a short wait, too.
            if begun < SHORT || self.waiting_since.is_none() {
                self.waiting_since = Some(commands);
            }
            return left(LONG);
        }
        if commands < self.last_group { left(SHORT) } else { None }
    }

    /// True when this group waits long.
    fn is_worth_it(&self, commands: usize) -> bool {
        let is_tried = || commands > 1 && self.since_try >= TRY_EVERY;
        self.waiting_since.is_some() || self.gain >= GAIN_MIN || is_tried()
    }

    /// Learns from a group that is closed.
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

    /// A group whose other commands arrive at these microseconds after the first, each with so many
    /// samples: how many it has, and how long it waited.
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
        // When they are gone, who is left waits a few times more.
        let waits = (0..100).map(|_| gather(&mut linger, &[], 100).1);
        assert!(waits.filter(|wait| !wait.is_zero()).count() < 8);
    }
}
