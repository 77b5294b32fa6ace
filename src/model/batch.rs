//! An accepted batch: the samples of one sender that are counted, or recognized as duplicates, as a
//! unit.
//!
//! Must never know: the protocol and the storage of batches.

use std::sync::Arc;

use super::{Histogram, ProjectName, SeriesId, UnixMillis, replica::Replica};

/// The sender of a batch and the batch's number.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BatchNumber {
    /// The name of the sender.
    pub sender: Arc<str>,
    /// The epoch of the sender's spool.
    pub epoch: i64,
    /// The number within the epoch, from 1.
    pub seq: u64,
}

impl BatchNumber {
    /// Returns the number that makes the store forget a sender; no sender uses this number.
    pub fn forget(sender: Arc<str>) -> Self {
        Self { sender, epoch: 0, seq: 0 }
    }

    /// Returns true when the number makes the store forget its sender.
    pub fn forgets(&self) -> bool {
        self.seq == 0
    }
}

/// The way in which the store recognizes samples that are sent again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Deduplication {
    /// The number of the batch identifies its samples.
    ByNumber(BatchNumber),
    /// The time of a sample identifies it: a series has one sample at a time. Samples that are
    /// further behind the latest sample than the window are refused.
    ByTime {
        /// The length of the window, more than 0.
        window_ms: i64,
    },
    /// The store does not recognize repeated samples: each copy counts.
    #[default]
    Never,
}

/// A batch whose series are resolved and whose samples passed all checks.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AcceptedBatch {
    /// The way in which the batch is recognized when it is sent again.
    pub deduplication: Deduplication,
    /// The sender's identity among several that send the same samples. The journal does not store
    /// it.
    pub replica: Option<Replica>,
    /// The series of each sample.
    pub series: Vec<SeriesId>,
    /// The times in Unix milliseconds: one per sample, or a single one for all.
    pub times: Vec<i64>,
    /// The starts of counters: one per sample, a single one for all, or none.
    pub starts: Vec<i64>,
    /// One value per sample.
    pub values: Vec<f64>,
    /// The histograms of samples, by ascending index.
    pub histograms: Vec<HistogramSample>,
}

/// The histogram of a sample of a batch. The value of the sample is the count of the histogram.
#[derive(Debug, Clone, PartialEq)]
pub struct HistogramSample {
    /// The index of the sample in the batch.
    pub index: u32,
    /// The histogram.
    pub histogram: Histogram,
}

impl AcceptedBatch {
    /// Returns a batch without samples that makes the store forget a sender.
    pub fn forget(sender: Arc<str>) -> Self {
        let deduplication = Deduplication::ByNumber(BatchNumber::forget(sender));
        Self { deduplication, ..Self::default() }
    }

    /// Returns the number, if the sender numbers batches.
    pub fn number(&self) -> Option<&BatchNumber> {
        match &self.deduplication {
            Deduplication::ByNumber(number) => Some(number),
            Deduplication::ByTime { .. } | Deduplication::Never => None,
        }
    }

    /// Sets the stored name of the sender in a project.
    pub fn set_project(&mut self, project: &ProjectName) {
        if let Deduplication::ByNumber(number) = &mut self.deduplication {
            number.sender = project.stored_name(&number.sender);
        }
    }

    /// Returns the length of the window, if samples are recognized by their times.
    pub fn window_ms(&self) -> Option<i64> {
        match self.deduplication {
            Deduplication::ByTime { window_ms } => Some(window_ms),
            Deduplication::ByNumber(_) | Deduplication::Never => None,
        }
    }

    /// Returns the time of a sample.
    pub fn time(&self, index: usize) -> UnixMillis {
        UnixMillis(if self.times.len() == 1 { self.times[0] } else { self.times[index] })
    }

    /// Returns the start of a sample's counter, 0 if unknown.
    pub fn start(&self, index: usize) -> i64 {
        match self.starts.len() {
            0 => 0,
            1 => self.starts[0],
            _ => self.starts[index],
        }
    }

    /// Removes the samples of series for which `is_kept` returns false.
    pub fn retain(&mut self, is_kept: impl Fn(SeriesId) -> bool) {
        let kept: Vec<_> = self.series.iter().map(|id| is_kept(*id)).collect();
        self.retain_samples(&kept);
    }

    /// Removes the samples at the indexes where `kept` is false.
    pub fn retain_samples(&mut self, kept: &[bool]) {
        let samples = kept.len();
        retain(&mut self.series, samples, kept);
        retain(&mut self.times, samples, kept);
        retain(&mut self.starts, samples, kept);
        retain(&mut self.values, samples, kept);
        if !self.histograms.is_empty() {
            self.retain_histograms(kept);
        }
    }

    /// Adds a sample that is a histogram. All samples of the batch must have times of their own.
    pub fn push_histogram(&mut self, series: SeriesId, at: UnixMillis, histogram: Histogram) {
        let index = self.series.len() as u32;
        self.series.push(series);
        self.times.push(at.0);
        self.values.push(histogram.count);
        self.histograms.push(HistogramSample { index, histogram });
    }

    fn retain_histograms(&mut self, kept: &[bool]) {
        let mut positions = kept.iter().scan(0, |next, kept| {
            let position = kept.then_some(*next);
            *next += u32::from(*kept);
            Some(position)
        });
        let mut before = 0;
        self.histograms.retain_mut(|sample| {
            let position = positions.nth((sample.index - before) as usize).flatten();
            before = sample.index + 1;
            sample.index = position.unwrap_or_default();
            position.is_some()
        });
    }

    /// Returns the approximate size of the batch in queues, and in the journal before compression,
    /// in bytes.
    pub fn weight(&self) -> usize {
        let histograms: usize = self.histograms.iter().map(|sample| sample.histogram.bytes()).sum();
        64 + self.series.len() * 12 + (self.times.len() + self.starts.len()) * 8 + histograms
    }
}

/// Retains the entries of a column that has one entry per sample.
fn retain<T>(column: &mut Vec<T>, samples: usize, kept: &[bool]) {
    if column.len() == samples {
        let mut kept = kept.iter();
        column.retain(|_| kept.next().is_some_and(|kept| *kept));
    }
}
