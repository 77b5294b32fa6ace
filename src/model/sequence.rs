//! Deduplication of batches: exactly once by sender, epoch and number.
//!
//! Batches normally arrive in order, but retries and parallel connections may reorder them, so the
//! last 1024 numbers below the highest are remembered one by one. For an older number it is unknown
//! whether it was accepted or lost: it is refused, never answered "duplicate".

use super::UnixMillis;

/// The count of remembered numbers below the highest.
pub const WINDOW_BATCHES: u64 = 1024;

/// The count of numbers that a sender may skip at once: 136 years of batches at one batch a second.
/// The limit therefore refuses only values that are not counts, such as a time in nanoseconds.
pub const SEQ_JUMP_MAX: u64 = 1 << 32;

const WORDS: usize = (WINDOW_BATCHES / 64) as usize;
/// The number of epochs that are remembered per sender; an agent that lost its spool begins a new
/// one.
const EPOCHS_MAX: usize = 4;

/// The highest number of an epoch with unknown contents; no sender counts this far.
const UNKNOWN_SEQ: u64 = i64::MAX as u64;

/// The result of checking a batch's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SequenceVerdict {
    /// The number was not seen before: accept the batch.
    New,
    /// The batch was accepted before: acknowledge it as a duplicate.
    Duplicate,
    /// The number is too far behind the sender's highest, or of a forgotten epoch: refuse the
    /// batch.
    TooOld,
    /// The number is further ahead than any sender counts: refuse the batch, because it would make
    /// all lower numbers too old.
    TooFar,
}

/// The accepted batches of one epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
struct EpochWindow {
    epoch: i64,
    highest: u64,
    /// The bit `seq % WINDOW_BATCHES` is set when `seq` was accepted.
    seen: [u64; WORDS],
}

/// The accepted batches of one sender.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SenderWindow {
    /// The time of the last accepted batch, Unix milliseconds; 0 if unknown.
    last_batch_at: i64,
    /// The epochs, ascending.
    epochs: Vec<EpochWindow>,
}

impl SenderWindow {
    /// Returns the window of a sender whose accepted batches are unknown, except that their epochs
    /// began by `latest`: batches of epochs up to then are refused, later ones are accepted.
    pub fn unknown_until(latest: UnixMillis) -> Self {
        let window = |epoch| EpochWindow { epoch, highest: UNKNOWN_SEQ, seen: [u64::MAX; WORDS] };
        let last = latest.0.max(EPOCHS_MAX as i64);
        let epochs = (last - EPOCHS_MAX as i64 + 1..=last).map(window).collect();
        Self { last_batch_at: latest.0, epochs }
    }

    /// Returns the verdict about a batch. Numbers begin at 1.
    pub fn check(&self, epoch: i64, seq: u64) -> SequenceVerdict {
        match self.epochs.iter().find(|window| window.epoch == epoch) {
            Some(window) => window.check(seq),
            None if self.epochs.len() == EPOCHS_MAX && epoch < self.epochs[0].epoch => {
                SequenceVerdict::TooOld
            }
            None if seq > SEQ_JUMP_MAX => SequenceVerdict::TooFar,
            None => SequenceVerdict::New,
        }
    }

    /// Returns the verdict about a batch, and records the batch if it is new, so that the batches
    /// of a group are checked in the order in which they will be applied.
    pub fn accept(&mut self, epoch: i64, seq: u64) -> SequenceVerdict {
        let verdict = self.check(epoch, seq);
        if verdict == SequenceVerdict::New {
            self.mark(epoch, seq);
        }
        verdict
    }

    /// Records an accepted batch. Numbers that are too old to be remembered change nothing.
    pub fn mark(&mut self, epoch: i64, seq: u64) {
        let index = match self.epochs.binary_search_by_key(&epoch, |window| window.epoch) {
            Ok(index) => index,
            Err(0) if self.epochs.len() == EPOCHS_MAX => return,
            Err(index) => {
                let window = EpochWindow { epoch, highest: 0, seen: [0; WORDS] };
                self.epochs.insert(index, window);
                let forgotten = self.epochs.len().saturating_sub(EPOCHS_MAX);
                self.epochs.drain(..forgotten);
                index - forgotten
            }
        };
        self.epochs[index].mark(seq);
    }

    /// Records that a batch was accepted at `now`.
    pub fn touch(&mut self, now: UnixMillis) {
        self.last_batch_at = self.last_batch_at.max(now.0);
    }

    /// Returns the time of the last accepted batch, 0 if unknown.
    pub fn last_batch_at(&self) -> UnixMillis {
        UnixMillis(self.last_batch_at)
    }

    /// Iterates over the remembered epochs, ascending, with the highest number of each.
    pub fn epochs(&self) -> impl DoubleEndedIterator<Item = (i64, u64)> {
        self.epochs.iter().map(|window| (window.epoch, window.highest))
    }

    /// Returns the stored form; FORMAT.md describes the layout.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(8 + self.epochs.len() * (16 + WORDS * 8));
        out.extend_from_slice(&self.last_batch_at.to_le_bytes());
        for window in &self.epochs {
            out.extend_from_slice(&window.epoch.to_le_bytes());
            out.extend_from_slice(&window.highest.to_le_bytes());
            for word in window.seen {
                out.extend_from_slice(&word.to_le_bytes());
            }
        }
        out
    }

    /// Reads the stored form; `None` if its length is wrong.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (words, rest) = bytes.as_chunks::<8>();
        let (last_batch_at, words) = words.split_first()?;
        if !rest.is_empty() || words.len() % (WORDS + 2) > 0 {
            return None;
        }
        let last_batch_at = i64::from_le_bytes(*last_batch_at);
        let mut epochs = Vec::new();
        for window in words.chunks_exact(WORDS + 2) {
            let mut seen = [0; WORDS];
            for (bit_word, bytes) in seen.iter_mut().zip(&window[2..]) {
                *bit_word = u64::from_le_bytes(*bytes);
            }
            let epoch = i64::from_le_bytes(window[0]);
            epochs.push(EpochWindow { epoch, highest: u64::from_le_bytes(window[1]), seen });
        }
        (epochs.len() <= EPOCHS_MAX).then_some(Self { last_batch_at, epochs })
    }
}

impl EpochWindow {
    fn check(&self, seq: u64) -> SequenceVerdict {
        if seq > self.highest {
            let is_near = seq - self.highest <= SEQ_JUMP_MAX;
            if is_near { SequenceVerdict::New } else { SequenceVerdict::TooFar }
        } else if self.highest - seq >= WINDOW_BATCHES {
            SequenceVerdict::TooOld
        } else if self.bit(seq) {
            SequenceVerdict::Duplicate
        } else {
            SequenceVerdict::New
        }
    }

    fn bit(&self, seq: u64) -> bool {
        let bit = seq % WINDOW_BATCHES;
        self.seen[(bit / 64) as usize] & (1 << (bit % 64)) != 0
    }

    fn mark(&mut self, seq: u64) {
        if seq > self.highest {
            // Numbers that enter the window were not seen yet.
            for skipped in (self.highest + 1..=seq).rev().take(WINDOW_BATCHES as usize) {
                let bit = skipped % WINDOW_BATCHES;
                self.seen[(bit / 64) as usize] &= !(1 << (bit % 64));
            }
            self.highest = seq;
        } else if self.highest - seq >= WINDOW_BATCHES {
            return;
        }
        let bit = seq % WINDOW_BATCHES;
        self.seen[(bit / 64) as usize] |= 1 << (bit % 64);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    /// Every number of every remembered epoch: the reference for the window's 144 bytes.
    #[derive(Default)]
    struct NaiveModel(BTreeMap<i64, BTreeSet<u64>>);

    impl NaiveModel {
        fn accept(&mut self, epoch: i64, seq: u64) -> SequenceVerdict {
            let is_full = self.0.len() == EPOCHS_MAX;
            if is_full && self.0.keys().all(|known| epoch < *known) {
                return SequenceVerdict::TooOld;
            }
            let numbers = self.0.get(&epoch);
            let highest = numbers.and_then(|numbers| numbers.last().copied()).unwrap_or(0);
            if seq > highest + SEQ_JUMP_MAX {
                return SequenceVerdict::TooFar;
            }
            if seq + WINDOW_BATCHES <= highest {
                return SequenceVerdict::TooOld;
            }
            if !self.0.entry(epoch).or_default().insert(seq) {
                return SequenceVerdict::Duplicate;
            }
            if self.0.len() > EPOCHS_MAX {
                self.0.pop_first();
            }
            SequenceVerdict::New
        }
    }

    /// Returns batch numbers that are adjacent, thousands apart, or larger than any sender's.
    fn number() -> impl Strategy<Value = u64> {
        prop_oneof![
            8 => 1..50_u64,
            8 => 1..6000_u64,
            2 => (1..20_u64).prop_map(|jump| jump << 28),
            1 => u64::MAX - 5..=u64::MAX,
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn the_window_agrees_with_a_set(
            steps in prop::collection::vec((0..8_i64, number()), 1..200)
        ) {
            let mut window = SenderWindow::default();
            let mut naive = NaiveModel::default();
            for (epoch, seq) in steps {
                let expected = naive.accept(epoch, seq);
                prop_assert_eq!(window.accept(epoch, seq), expected, "{}/{}", epoch, seq);
                window.touch(UnixMillis(seq as i64 >> 1));
                let kept = SenderWindow::from_bytes(&window.to_bytes());
                prop_assert_eq!(kept.as_ref(), Some(&window));
            }
        }

        #[test]
        fn numbers_too_old_to_be_remembered_change_nothing(
            steps in prop::collection::vec((0..8_i64, number()), 1..100)
        ) {
            let mut window = SenderWindow::default();
            for (epoch, seq) in steps {
                let before = window.clone();
                let verdict = window.check(epoch, seq);
                window.mark(epoch, seq);
                let unchanged = [SequenceVerdict::Duplicate, SequenceVerdict::TooOld];
                prop_assert_eq!(window == before, unchanged.contains(&verdict));
            }
        }
    }

    #[test]
    fn an_unknown_window_accepts_only_numbers_of_later_epochs() {
        let window = SenderWindow::unknown_until(UnixMillis(1000));
        for epoch in [-5, 0, 7, 997, 999, 1000] {
            assert_eq!(window.check(epoch, 1), SequenceVerdict::TooOld, "{epoch}");
            assert_eq!(window.check(epoch, 1 << 40), SequenceVerdict::TooOld, "{epoch}");
        }
        assert_eq!(SenderWindow::from_bytes(&window.to_bytes()), Some(window.clone()));
        let mut window = window;
        for epoch in 1001..1010 {
            assert_eq!(window.accept(epoch, 8), SequenceVerdict::New);
            assert_eq!(window.check(1000, 1), SequenceVerdict::TooOld);
        }
    }

    #[test]
    fn a_batch_that_was_overtaken_is_new_and_its_retry_a_duplicate() {
        let mut window = SenderWindow::default();
        window.mark(1, 7);
        assert_eq!(window.check(1, 5), SequenceVerdict::New);
        window.mark(1, 5);
        assert_eq!(window.check(1, 5), SequenceVerdict::Duplicate);
        window.mark(1, 5 + WINDOW_BATCHES);
        assert_eq!(window.check(1, 5), SequenceVerdict::TooOld);
    }

    #[test]
    fn a_number_below_the_window_does_not_mark_a_number_in_the_window() {
        // Regression: 50 after 2000 set the bit of 1074, which was then answered "duplicate".
        let mut window = SenderWindow::default();
        window.mark(1, 2000);
        window.mark(1, 50);
        assert_eq!(window.check(1, 1074), SequenceVerdict::New);
        for epoch in [2, 3, 4, 5, 1] {
            window.mark(epoch, 1);
        }
        // Epoch 1 was forgotten by then, and its number counts for no other epoch.
        window.mark(1, 2);
        let second: Vec<_> = (2..6).map(|epoch| window.check(epoch, 2)).collect();
        assert_eq!(second, [SequenceVerdict::New; 4]);
    }
}
