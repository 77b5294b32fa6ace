//! An accepted batch: the samples of one sender that count, or are known already, in one piece.
//!
//! Must never know: how it came, and how it is stored.

use std::sync::Arc;

use super::{SeriesId, UnixMillis, replica::Replica};

/// Who sent a batch, and its number.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BatchNumber {
    /// Name of the sender.
    pub sender: Arc<str>,
    /// Epoch of its spool.
    pub epoch: i64,
    /// Number within the epoch, from 1.
    pub seq: u64,
}

impl BatchNumber {
    /// What makes a sender forgotten: a number that no batch has.
    pub fn forget(sender: Arc<str>) -> Self {
        Self { sender, epoch: 0, seq: 0 }
    }

    /// Whether it makes its sender forgotten.
    pub fn forgets(&self) -> bool {
        self.seq == 0
    }
}

/// By what samples are known that come again, so that they count once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum CountsOnce {
    /// By the number of their batch.
    ByNumber(BatchNumber),
    /// By their time: each counts once in its series. Those that are further behind the latest one
    /// than a window are refused.
    ByTime {
        /// The window, more than 0.
        window_ms: i64,
    },
    /// By nothing: they count as often as they come.
    #[default]
    Never,
}

/// A batch whose series are resolved and whose samples passed all checks.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AcceptedBatch {
    /// By what it is known when it comes again.
    pub counts_once: CountsOnce,
    /// Which sender it is of several that send the same samples. The journal does not keep it.
    pub replica: Option<Replica>,
    /// The series of each sample.
    pub series: Vec<SeriesId>,
    /// Unix milliseconds: one per sample, or a single one for all.
    pub times: Vec<i64>,
    /// Since when counters count: one per sample, a single one for all, or none.
    pub starts: Vec<i64>,
    /// One value per sample.
    pub values: Vec<f64>,
}

impl AcceptedBatch {
    /// No samples, and a sender that is forgotten.
    pub fn forget(sender: Arc<str>) -> Self {
        let counts_once = CountsOnce::ByNumber(BatchNumber::forget(sender));
        Self { counts_once, ..Self::default() }
    }

    /// The number, when its sender numbers batches.
    pub fn number(&self) -> Option<&BatchNumber> {
        match &self.counts_once {
            CountsOnce::ByNumber(number) => Some(number),
            CountsOnce::ByTime { .. } | CountsOnce::Never => None,
        }
    }

    /// The window within which its times count once, when they do.
    pub fn window_ms(&self) -> Option<i64> {
        match self.counts_once {
            CountsOnce::ByTime { window_ms } => Some(window_ms),
            CountsOnce::ByNumber(_) | CountsOnce::Never => None,
        }
    }

    /// Time of a sample.
    pub fn time(&self, index: usize) -> UnixMillis {
        UnixMillis(if self.times.len() == 1 { self.times[0] } else { self.times[index] })
    }

    /// Counter start of a sample, 0 when not known.
    pub fn start(&self, index: usize) -> i64 {
        match self.starts.len() {
            0 => 0,
            1 => self.starts[0],
            _ => self.starts[index],
        }
    }

    /// Leaves out the samples of series that are not to be kept.
    pub fn retain(&mut self, is_kept: impl Fn(SeriesId) -> bool) {
        let kept: Vec<_> = self.series.iter().map(|id| is_kept(*id)).collect();
        self.retain_samples(&kept);
    }

    /// Leaves out samples by their places.
    pub fn retain_samples(&mut self, kept: &[bool]) {
        let samples = kept.len();
        retain(&mut self.series, samples, kept);
        retain(&mut self.times, samples, kept);
        retain(&mut self.starts, samples, kept);
        retain(&mut self.values, samples, kept);
    }

    /// About how many bytes the batch takes in queues, and in the journal before it is packed.
    pub fn weight(&self) -> usize {
        64 + self.series.len() * 12 + (self.times.len() + self.starts.len()) * 8
    }
}

/// Retains the entries of a column that has one for each sample.
fn retain<T>(column: &mut Vec<T>, samples: usize, kept: &[bool]) {
    if column.len() == samples {
        let mut kept = kept.iter();
        column.retain(|_| kept.next().is_some_and(|kept| *kept));
    }
}
