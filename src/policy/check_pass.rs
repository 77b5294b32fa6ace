//! A pass of the checker over all files: determines which file is due, so that the pass takes a
//! given time.
//!
//! Must never know: the files, how they are checked.

use std::{collections::VecDeque, time::Duration};

use crate::model::UnixMillis;

/// A pass over files of type `F`, each with its size in bytes.
#[derive(Debug, Clone)]
pub struct CheckPass<F> {
    files: VecDeque<(F, u64)>,
    length: Duration,
    /// The bytes of all files.
    total: u64,
    /// The bytes of the files that were due.
    done: u64,
}

impl<F> CheckPass<F> {
    /// Begins a pass of a length. The clock determines the first file, so that a daemon that
    /// restarts often checks different files each time.
    pub fn begin(
        files: impl IntoIterator<Item = (F, u64)>,
        length: Duration,
        now: UnixMillis,
    ) -> Self {
        let mut files: VecDeque<_> = files.into_iter().collect();
        let length_ms = i64::try_from(length.as_millis()).unwrap_or(i64::MAX).max(1);
        let first = i128::from(now.0.rem_euclid(length_ms)) * files.len() as i128;
        files.rotate_left((first / i128::from(length_ms)) as usize);
        let total = files.iter().map(|(_, bytes)| bytes).sum();
        Self { files, length, total, done: 0 }
    }

    /// Takes the next file if it is due at a time after the start of the pass: the share of the
    /// bytes that are done must not be larger than the share of the time that has passed.
    pub fn next_due(&mut self, elapsed: Duration) -> Option<F> {
        let due = self.total as f64 * elapsed.as_secs_f64() / self.length.as_secs_f64().max(1e-3);
        if self.done as f64 > due {
            return None;
        }
        let (file, bytes) = self.files.pop_front()?;
        self.done += bytes;
        Some(file)
    }

    /// Returns true when all files were taken.
    pub fn is_done(&self) -> bool {
        self.files.is_empty()
    }

    /// Returns true when the pass is done and its time is over.
    pub fn is_over(&self, elapsed: Duration) -> bool {
        self.is_done() && elapsed >= self.length
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WEEK: Duration = Duration::from_secs(7 * 86_400);

    proptest! {
        #[test]
        fn a_pass_takes_each_file_once_and_evenly(
            sizes in prop::collection::vec(0_u64..1_000_000, 0..40),
            now in 0_i64..2_000_000_000_000,
        ) {
            let files = sizes.iter().copied().enumerate();
            let mut pass = CheckPass::begin(files, WEEK, UnixMillis(now));
            let total: u64 = sizes.iter().sum();
            let mut taken = Vec::new();
            for minute in 0..=7 * 24 * 60_u32 {
                let elapsed = Duration::from_secs(60) * minute;
                while let Some(file) = pass.next_due(elapsed) {
                    taken.push(file);
                }
                let done: u64 = taken.iter().map(|file| sizes[*file]).sum();
                let due = total as f64 * elapsed.as_secs_f64() / WEEK.as_secs_f64();
                prop_assert!(done as f64 <= due + 1e6 + 1.0);
                prop_assert!(pass.is_over(elapsed) == (pass.is_done() && elapsed >= WEEK));
            }
            prop_assert!(pass.is_over(WEEK));
            taken.sort_unstable();
            prop_assert_eq!(taken, (0..sizes.len()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn passes_that_begin_at_other_times_begin_with_other_files() {
        let first = |now: i64| {
            let files = (0..7).map(|file| (file, 10));
            CheckPass::begin(files, WEEK, UnixMillis(now * 86_400_000)).next_due(Duration::ZERO)
        };
        assert_eq!((0..9).filter_map(first).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 6, 0, 1]);
    }
}
