//! The accepted times of a series, for senders that do not number their batches.
//!
//! Senders without numbers repeat a sample when a response is lost, and send out of order when they
//! use several queues. The recently accepted times are stored as runs of equal steps: a series that
//! is scraped regularly needs only one run.

use super::UnixMillis;

/// The maximum number of runs; when there are more, the oldest is forgotten, and times before its
/// end are refused.
const RUNS_MAX: usize = 48;
const RUN_BYTES: usize = 16;
/// The largest time that a sample may have.
const LATEST_MS: i64 = UnixMillis::MAX.0;

/// The result of checking a sample's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeVerdict {
    /// The time was not seen before.
    New,
    /// The time was accepted before.
    Duplicate,
    /// The time is too far behind the latest to decide.
    TooOld,
}

/// The times `first`, `first + step`, ..., `count` of them, in Unix milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    first: i64,
    step: u32,
    count: u32,
}

impl Run {
    fn last(&self) -> i64 {
        self.first + i64::from(self.step) * (i64::from(self.count) - 1)
    }

    fn contains(&self, at: i64) -> bool {
        let offset = at - self.first;
        match self.step {
            0 => offset == 0,
            step => {
                (0..=self.last() - self.first).contains(&offset) && offset % i64::from(step) == 0
            }
        }
    }

    /// Appends a later time if it continues the run's steps; returns true if it did.
    fn extend(&mut self, at: i64) -> bool {
        let Ok(gap) = u32::try_from(at - self.last()) else { return false };
        let in_step = self.count == 1 || gap == self.step;
        if in_step && self.count < u32::MAX {
            self.step = gap;
            self.count += 1;
            return true;
        }
        false
    }
}

/// The accepted times of one series.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SeenTimes {
    /// The runs; the last one contains the latest time, the others are in no order.
    runs: Vec<Run>,
    /// The time up to which accepted times are forgotten.
    floor: i64,
}

impl SeenTimes {
    /// Returns the allocated memory of the runs, in bytes.
    pub fn run_bytes(&self) -> usize {
        self.runs.capacity() * size_of::<Run>()
    }

    /// Returns the state of a series whose times up to `latest` are lost: all of them count as
    /// seen.
    pub fn unknown_until(latest: UnixMillis) -> Self {
        Self { runs: Vec::new(), floor: latest.0 }
    }

    /// Returns the latest accepted time.
    pub fn latest(&self) -> Option<UnixMillis> {
        self.runs.last().map(|run| UnixMillis(run.last()))
    }

    /// Returns true for the initial state.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.floor == 0
    }

    /// Returns the verdict about a time, which is not negative, and records the time if it is new.
    /// Times more than `window_ms` before the latest are too old.
    pub fn note(&mut self, at: UnixMillis, window_ms: i64) -> TimeVerdict {
        let UnixMillis(at) = at;
        let Some(newest) = self.runs.last_mut() else {
            if at <= self.floor && self.floor > 0 {
                return TimeVerdict::TooOld;
            }
            // Most series never need a second run.
            self.runs.reserve_exact(1);
            self.runs.push(Run { first: at, step: 0, count: 1 });
            return TimeVerdict::New;
        };
        let latest = newest.last();
        if at > latest {
            if !newest.extend(at) {
                self.runs.push(Run { first: at, step: 0, count: 1 });
                self.forget(at - window_ms);
            }
            return TimeVerdict::New;
        }
        if self.runs.iter().any(|run| run.contains(at)) {
            return TimeVerdict::Duplicate;
        }
        if at < latest - window_ms || at <= self.floor {
            return TimeVerdict::TooOld;
        }
        let before_newest = self.runs.len() - 1;
        self.runs.insert(before_newest, Run { first: at, step: 0, count: 1 });
        self.forget(latest - window_ms);
        TimeVerdict::New
    }

    /// Forgets runs that end before `since`, and the oldest if there are too many. The floor moves
    /// with them: under a longer window later, forgotten times must not be new.
    fn forget(&mut self, since: i64) {
        let newest = self.runs.len() - 1;
        let (mut index, mut floor) = (0, self.floor);
        self.runs.retain(|run| {
            index += 1;
            let is_kept = index > newest || run.last() >= since;
            if !is_kept {
                floor = floor.max(run.last());
            }
            is_kept
        });
        self.floor = floor;
        if self.runs.len() > RUNS_MAX {
            let older = self.runs[..self.runs.len() - 1].iter().enumerate();
            if let Some((oldest, run)) = older.min_by_key(|(_, run)| run.last()) {
                self.floor = self.floor.max(run.last());
                self.runs.remove(oldest);
            }
        }
    }

    /// Appends the stored form; FORMAT.md describes the layout.
    pub fn to_bytes(&self, out: &mut Vec<u8>) {
        out.push(self.runs.len() as u8);
        out.extend_from_slice(&self.floor.to_le_bytes());
        for run in &self.runs {
            out.extend_from_slice(&run.first.to_le_bytes());
            out.extend_from_slice(&run.step.to_le_bytes());
            out.extend_from_slice(&run.count.to_le_bytes());
        }
    }

    /// Reads the stored form and advances `bytes` past it; `None` if it is damaged.
    pub fn from_bytes(bytes: &mut &[u8]) -> Option<Self> {
        let (count, rest) = bytes.split_first()?;
        let (floor, rest) = rest.split_first_chunk::<8>()?;
        let (runs, rest) = rest.split_at_checked(usize::from(*count) * RUN_BYTES)?;
        *bytes = rest;
        let read = |run: &[u8; RUN_BYTES]| {
            let (first, rest) = run.split_first_chunk::<8>()?;
            let (step, count) = rest.split_first_chunk::<4>()?;
            let run = Run {
                first: i64::from_le_bytes(*first),
                step: u32::from_le_bytes(*step),
                count: u32::from_le_bytes(*count.first_chunk()?),
            };
            let length = i64::from(run.step).checked_mul(i64::from(run.count) - 1)?;
            let sane = run.count > 0 && (0..=LATEST_MS).contains(&run.first) && length <= LATEST_MS;
            sane.then_some(run)
        };
        let runs = runs.as_chunks::<RUN_BYTES>().0.iter().map(read).collect::<Option<_>>()?;
        Some(Self { runs, floor: i64::from_le_bytes(*floor) })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const WINDOW: i64 = 600_000;

    #[test]
    fn a_regular_series_needs_one_run_and_recognizes_every_retry() {
        let mut seen = SeenTimes::default();
        for at in (0..10_000).map(|i| i * 15_000) {
            assert_eq!(seen.note(UnixMillis(at), WINDOW), TimeVerdict::New);
            assert_eq!(seen.note(UnixMillis(at), WINDOW), TimeVerdict::Duplicate);
        }
        assert_eq!(seen.runs.len(), 1);
        assert_eq!(seen.note(UnixMillis(15_000 * 5000), WINDOW), TimeVerdict::Duplicate);
        assert_eq!(seen.note(UnixMillis(15_000 * 5000 + 1), WINDOW), TimeVerdict::TooOld);
    }

    #[test]
    fn a_longer_window_does_not_count_again_what_was_forgotten_under_a_shorter_one() {
        let mut seen = SeenTimes::default();
        for at in [1_000_000, 1_003_000, 1_004_000, 9_000_000, 9_001_000, 9_005_000] {
            assert_eq!(seen.note(UnixMillis(at), WINDOW), TimeVerdict::New);
        }
        let mut bytes = Vec::new();
        seen.to_bytes(&mut bytes);
        let mut seen = SeenTimes::from_bytes(&mut &bytes[..]).unwrap();
        assert_eq!(seen.note(UnixMillis(1_003_000), 20 * WINDOW), TimeVerdict::TooOld);
        assert_eq!(seen.note(UnixMillis(1_005_000), 20 * WINDOW), TimeVerdict::New);
    }

    proptest! {
        #[test]
        fn no_time_is_accepted_twice_and_recent_ones_are_never_refused(
            steps in prop::collection::vec((0..3_u8, 1..20_000_i64, 1..=3_i64), 1..200)
        ) {
            let (mut seen, mut model) = (SeenTimes::default(), BTreeSet::new());
            let mut latest = 1_000_000_i64;
            let mut shortest = i64::MAX;
            for (kind, length, windows) in steps {
                let window = windows * WINDOW / 100;
                shortest = shortest.min(window);
                let at = match kind {
                    0 => latest + 10_000,
                    1 => latest + length,
                    _ => latest - length,
                };
                let behind = model.range(at..).count();
                match seen.note(UnixMillis(at), window) {
                    TimeVerdict::New => prop_assert!(model.insert(at), "{at} twice"),
                    TimeVerdict::Duplicate => prop_assert!(model.contains(&at)),
                    TimeVerdict::TooOld => {
                        prop_assert!(at < latest - shortest || behind >= RUNS_MAX, "{at} {behind}");
                    }
                }
                latest = latest.max(at);
                let mut bytes = Vec::new();
                seen.to_bytes(&mut bytes);
                let mut rest = &bytes[..];
                let read = SeenTimes::from_bytes(&mut rest);
                prop_assert_eq!(read.as_ref(), Some(&seen));
                prop_assert!(rest.is_empty());
            }
        }
    }
}
