//! Histograms of slots with the times of their readings, and windows over them.
//!
//! Must never know: the store, the tree.

use std::sync::Arc;

use crate::model::{Histogram, HistogramSlot, Kind};

/// The histograms of a slot, or a single histogram.
#[derive(Debug, Clone)]
pub(crate) struct TimedHistogram {
    /// Time of the first reading, Unix milliseconds.
    pub(crate) first_at: i64,
    /// Time of the last reading.
    pub(crate) last_at: i64,
    /// Number of readings.
    pub(crate) n: u32,
    /// The increase of a counter, or the sum of the readings.
    pub(crate) total: Arc<Histogram>,
    /// The first reading.
    pub(crate) first: Arc<Histogram>,
    /// The last reading.
    pub(crate) last: Arc<Histogram>,
    /// The kind, in a series with several kinds of histograms.
    pub(crate) kind: Option<Kind>,
}

/// A known reading: its time and value.
pub(crate) type HistogramReading<'a> = (i64, &'a Arc<Histogram>);

impl TimedHistogram {
    /// Creates the histogram of one reading.
    pub(crate) fn reading(at: i64, histogram: Arc<Histogram>) -> Self {
        let [total, first, last] = [histogram.clone(), histogram.clone(), histogram];
        Self { first_at: at, last_at: at, n: 1, total, first, last, kind: None }
    }

    /// Returns the memory of histograms that no other slot shares.
    pub(crate) fn bytes(&self) -> usize {
        let histograms = [&self.total, &self.first, &self.last];
        size_of::<Self>() + histograms.map(|histogram| histogram.bytes()).iter().sum::<usize>()
    }

    /// Returns the histograms of a stored slot.
    pub(crate) fn of_slot(slot: HistogramSlot) -> Self {
        let (start, cell) = (slot.start.0, slot.cell);
        let first = Arc::new(cell.first);
        let last = if cell.n == 1 { first.clone() } else { Arc::new(cell.last) };
        Self {
            first_at: start + i64::from(cell.first_at),
            last_at: start + i64::from(cell.last_at),
            n: cell.n,
            total: Arc::new(cell.total),
            first,
            last,
            kind: None,
        }
    }

    /// Returns true when some readings are unknown.
    pub(crate) fn is_merged(&self) -> bool {
        self.n > 2
    }

    /// Returns the known readings: the first and the last one.
    pub(crate) fn readings(&self) -> impl Iterator<Item = HistogramReading<'_>> {
        let first = (self.n > 1).then_some((self.first_at, &self.first));
        first.into_iter().chain([(self.last_at, &self.last)])
    }
}

/// The histograms of a series in a window.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HistogramWindow<'a> {
    /// All slots with readings in the window, including cut ones.
    pub(crate) slots: &'a [TimedHistogram],
    /// The start of the window, exclusive.
    pub(crate) from: i64,
    /// The end of the window, inclusive.
    pub(crate) to: i64,
}

impl<'a> HistogramWindow<'a> {
    /// Returns the window `(from, to]` over histograms in ascending order.
    pub(crate) fn new(all: &'a [TimedHistogram], from: i64, to: i64) -> Self {
        let lo = all.partition_point(|slot| slot.last_at <= from);
        let hi = all.partition_point(|slot| slot.first_at <= to);
        Self { slots: &all[lo..hi.max(lo)], from, to }
    }

    /// Returns the known readings in the window.
    pub(crate) fn readings(&self) -> Vec<HistogramReading<'a>> {
        let Self { from, to, .. } = *self;
        let all = self.slots.iter().flat_map(TimedHistogram::readings);
        all.filter(|(at, _)| *at > from && *at <= to).collect()
    }

    /// Returns true when some readings are unknown.
    pub(crate) fn has_merged(&self) -> bool {
        self.slots.iter().any(TimedHistogram::is_merged)
    }

    /// Returns the part of a slot's readings that is in the window, as if they were equally spaced.
    pub(crate) fn part(&self, slot: &TimedHistogram) -> f64 {
        let from = slot.first_at.max(self.from + 1);
        let to = slot.last_at.min(self.to);
        if from == slot.first_at && to == slot.last_at {
            return 1.0;
        }
        let steps = f64::from(slot.n.saturating_sub(1).max(1));
        let spacing = (slot.last_at - slot.first_at) as f64 / steps;
        let count = |until: i64| ((until - slot.first_at) as f64 / spacing).floor() + 1.0;
        let before = if from > slot.first_at { count(self.from) } else { 0.0 };
        ((count(to) - before) / f64::from(slot.n)).clamp(0.0, 1.0)
    }

    /// Returns the kind of the histograms in the window; `None` when the series has one kind.
    pub(crate) fn kind(&self) -> Option<Kind> {
        self.slots.last()?.kind
    }

    /// Returns true when slots have increases or sums of different kinds, which have no meaning
    /// together. Single readings of counters and gauges have one, as in Prometheus.
    pub(crate) fn mixes_kinds(&self) -> bool {
        let kind = self.kind();
        let is_stored =
            |slot: &TimedHistogram| slot.is_merged() || slot.kind == Some(Kind::DeltaHistogram);
        self.slots.iter().any(|slot| slot.kind != kind) && self.slots.iter().any(is_stored)
    }

    /// Returns the number of readings in the window.
    pub(crate) fn count(&self) -> f64 {
        self.slots.iter().map(|slot| (self.part(slot) * f64::from(slot.n)).round()).sum()
    }
}
