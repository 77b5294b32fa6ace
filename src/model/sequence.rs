//! Which of a sender's batches have been accepted: exactly once by `(agent, epoch, seq)`.
//!
//! Batches normally come in order, but retries and parallel connections may reorder them, so the
//! last 1024 numbers below the highest are remembered one by one. An older number is neither
//! known to be accepted nor known to be lost: it is refused, never answered "duplicate".

/// Numbers below the highest that are remembered one by one.
pub const WINDOW_BATCHES: u64 = 1024;

const WORDS: usize = (WINDOW_BATCHES / 64) as usize;
/// Epochs remembered for a sender; an agent whose spool was lost begins a new one.
const EPOCHS_MAX: usize = 4;

/// What a batch's number says about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SequenceVerdict {
    /// Not seen before: accept it.
    New,
    /// Accepted before: answer so and change nothing.
    Duplicate,
    /// Too far behind the sender's highest number, or of a forgotten epoch: refuse it.
    TooOld,
}

/// The accepted batches of one epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
struct EpochWindow {
    epoch: i64,
    highest: u64,
    /// Bit `seq % WINDOW_BATCHES` is set when `seq` was accepted.
    seen: [u64; WORDS],
}

/// The accepted batches of one sender.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SenderWindow {
    /// Ascending by epoch.
    epochs: Vec<EpochWindow>,
}

impl SenderWindow {
    /// What to do with a batch. Numbers begin at 1.
    pub fn check(&self, epoch: i64, seq: u64) -> SequenceVerdict {
        match self.epochs.iter().find(|window| window.epoch == epoch) {
            Some(window) => window.check(seq),
            None if self.epochs.len() == EPOCHS_MAX && epoch < self.epochs[0].epoch => {
                SequenceVerdict::TooOld
            }
            None => SequenceVerdict::New,
        }
    }

    /// Notes that a batch was accepted.
    pub fn mark(&mut self, epoch: i64, seq: u64) {
        let index = match self.epochs.binary_search_by_key(&epoch, |window| window.epoch) {
            Ok(index) => index,
            Err(index) => {
                let window = EpochWindow { epoch, highest: 0, seen: [0; WORDS] };
                self.epochs.insert(index, window);
                if self.epochs.len() > EPOCHS_MAX {
                    self.epochs.remove(0);
                    index.saturating_sub(1)
                } else {
                    index
                }
            }
        };
        self.epochs[index].mark(seq);
    }

    /// The bytes kept on disk; the layout is in FORMAT.md.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.epochs.len() * (16 + WORDS * 8));
        for window in &self.epochs {
            out.extend_from_slice(&window.epoch.to_le_bytes());
            out.extend_from_slice(&window.highest.to_le_bytes());
            for word in window.seen {
                out.extend_from_slice(&word.to_le_bytes());
            }
        }
        out
    }

    /// Reads what `to_bytes` wrote; `None` when the length is wrong.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (words, rest) = bytes.as_chunks::<8>();
        if !rest.is_empty() || words.len() % (WORDS + 2) != 0 {
            return None;
        }
        let mut epochs = Vec::new();
        for window in words.chunks_exact(WORDS + 2) {
            let mut seen = [0; WORDS];
            for (bit_word, bytes) in seen.iter_mut().zip(&window[2..]) {
                *bit_word = u64::from_le_bytes(*bytes);
            }
            let epoch = i64::from_le_bytes(window[0]);
            epochs.push(EpochWindow { epoch, highest: u64::from_le_bytes(window[1]), seen });
        }
        (epochs.len() <= EPOCHS_MAX).then_some(Self { epochs })
    }
}

impl EpochWindow {
    fn check(&self, seq: u64) -> SequenceVerdict {
        if seq > self.highest {
            SequenceVerdict::New
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
            // Numbers that slide into the window were not seen yet.
            for skipped in (self.highest + 1..=seq).rev().take(WINDOW_BATCHES as usize) {
                let bit = skipped % WINDOW_BATCHES;
                self.seen[(bit / 64) as usize] &= !(1 << (bit % 64));
            }
            self.highest = seq;
        }
        let bit = seq % WINDOW_BATCHES;
        self.seen[(bit / 64) as usize] |= 1 << (bit % 64);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_window_agrees_with_a_set(
            steps in prop::collection::vec((0..6_i64, 1..3000_u64), 1..200)
        ) {
            let mut window = SenderWindow::default();
            let mut model = BTreeSet::new();
            for (epoch, seq) in steps {
                match window.check(epoch, seq) {
                    SequenceVerdict::New => {
                        prop_assert!(model.insert((epoch, seq)), "{epoch}/{seq} counted twice");
                        window.mark(epoch, seq);
                    }
                    SequenceVerdict::Duplicate => prop_assert!(model.contains(&(epoch, seq))),
                    SequenceVerdict::TooOld => {}
                }
                let kept = SenderWindow::from_bytes(&window.to_bytes());
                prop_assert_eq!(kept.as_ref(), Some(&window));
            }
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
}
