//! The target of decoders whose protocols name a series in each row. A fingerprint of the sender's
//! notation identifies the series, so that a known series costs one lookup and no allocation.

mod decoded;
mod lookup;
mod observations;
mod split;

use std::{collections::HashMap, sync::Arc};

use foldhash::fast::FixedState;

use super::{
    memory::{NoMemory, ReservedMemory},
    refusals::Refusals,
    series_cache::{Fingerprint, SeriesCache},
};
use crate::{
    model::{
        Distributions, Histogram, HistogramFault, HistogramSample, Kind, STALE_MARKER, SeriesId,
        SeriesInfo, SeriesKey, SeriesLimits, UnixMillis,
    },
    policy::RefusalReason,
};
pub use decoded::{DecodedRows, NumberedSample};
pub use observations::observe;
pub(super) use split::decode_part;
pub use split::{SplitRows, shard_of_sender, shard_of_series};

/// The series of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target(TargetKind);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TargetKind {
    Series(SeriesId),
    Refused(RefusalReason),
    /// The index of a definition that is not registered yet.
    New(u32),
}

/// A series as a decoder describes it.
#[derive(Debug)]
pub struct DescribedSeries {
    /// The metric and the tags.
    pub key: SeriesKey,
    /// The kind by the protocol or the name.
    pub kind: Kind,
    /// True when the sender declares the kind: a known series of another kind gets this kind.
    /// Otherwise a known series keeps its kind.
    pub is_declared: bool,
    /// The unit; empty if there is none.
    pub unit: Arc<str>,
}

/// The meaning of the kind in a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KindOf {
    /// A known series keeps its kind.
    Guessed,
    /// A known series of another kind gets this kind.
    Declared,
    /// Stale markers keep the kind of a known series, whatever it is.
    End,
    /// The settings make the samples observations, which only a series of their kind takes.
    Observed,
}

#[derive(Debug, Clone, Copy)]
struct Row {
    target: TargetKind,
    at: UnixMillis,
    value: f64,
    start: i64,
}

/// A point of a protocol whose points have several samples each: the samples from `first` up to the
/// next point.
#[derive(Debug, Clone, Copy)]
struct Point {
    first: u32,
    /// True when any part of the point was refused.
    is_refused: bool,
}

/// A function that returns the ID and the kind of a known series.
pub type FindSeries<'a> = &'a dyn Fn(&SeriesKey) -> Option<(SeriesId, Kind)>;

/// The memory of a sample until it is durable: here, in a batch, and in the journal's record.
const SAMPLE_BYTES: usize = size_of::<Row>() + 2 * 28;
/// The minimum number of samples for which memory is reserved at a time.
const SAMPLES_AT_ONCE: usize = 256;

/// The reason why the rest of a request is not decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitExceeded {
    /// The request has too many new series.
    Series,
    /// No memory is left for its samples.
    Memory(NoMemory),
}

/// The samples of one request.
#[expect(missing_debug_implementations, reason = "it holds a closure")]
pub struct Rows<'a> {
    cache: &'a mut SeriesCache,
    find: FindSeries<'a>,
    /// The limits of series.
    pub limits: &'a SeriesLimits,
    sender: &'a str,
    samples: Vec<Row>,
    /// The histograms of samples, by ascending index.
    histograms: Vec<HistogramSample>,
    points: Vec<Point>,
    /// The indexes of the definitions, by fingerprint.
    new_series: HashMap<Fingerprint, u32, FixedState>,
    definitions: Vec<(Fingerprint, SeriesInfo)>,
    /// The meaning of the kind of each definition.
    declared: Vec<KindOf>,
    refused: Refusals,
    definitions_max: usize,
    memory: Option<&'a mut ReservedMemory>,
    exceeded: Option<LimitExceeded>,
    /// The bytes of the histograms.
    histogram_bytes: usize,
    /// The gauges whose samples are observations.
    distributions: Option<&'a Distributions>,
}

impl<'a> Rows<'a> {
    /// Returns empty rows. `sender` is charged for new series.
    pub fn new(
        cache: &'a mut SeriesCache,
        find: FindSeries<'a>,
        limits: &'a SeriesLimits,
        sender: &'a str,
    ) -> Self {
        Self {
            cache,
            find,
            limits,
            sender,
            samples: Vec::new(),
            histograms: Vec::new(),
            points: Vec::new(),
            new_series: HashMap::default(),
            definitions: Vec::new(),
            declared: Vec::new(),
            refused: Refusals::default(),
            definitions_max: usize::MAX,
            memory: None,
            exceeded: None,
            histogram_bytes: 0,
            distributions: None,
        }
    }

    /// Returns the rows with a limit for new series, and a source of memory for the samples.
    #[must_use]
    pub fn with_limits(
        mut self,
        definitions_max: usize,
        memory: Option<&'a mut ReservedMemory>,
    ) -> Self {
        (self.definitions_max, self.memory) = (definitions_max, memory);
        self
    }

    /// Returns the rows with gauges whose series are series of histograms; see [`observe`].
    #[must_use]
    pub fn with_distributions(mut self, distributions: &'a Distributions) -> Self {
        self.distributions = Some(distributions);
        self
    }

    /// Adds a sample; `start` is the start of a counter, 0 if unknown.
    #[inline]
    pub fn push(&mut self, target: Target, at: UnixMillis, value: f64, start: i64) {
        if self.samples.len() == self.samples.capacity() {
            self.grow();
        }
        if self.exceeded.is_none() {
            self.samples.push(Row { target: target.0, at, value, start });
        }
    }

    /// Adds a sample that is a histogram, or refuses it.
    pub fn push_histogram(
        &mut self,
        target: Target,
        at: UnixMillis,
        histogram: Result<Histogram, HistogramFault>,
        start: i64,
    ) {
        let histogram = match histogram {
            Ok(histogram) => histogram,
            Err(fault) => {
                self.refuse(RefusalReason::BadHistogram, 1, || fault.to_string());
                return;
            }
        };
        if histogram.is_stale() {
            self.push(target, at, STALE_MARKER, start);
            return;
        }
        // Here, in a batch, and in the journal's record.
        self.reserve_memory(3 * histogram.bytes());
        self.histogram_bytes += histogram.bytes();
        let index = self.samples.len();
        self.push(target, at, histogram.count, start);
        if self.samples.len() > index {
            self.histograms.push(HistogramSample { index: index as u32, histogram });
        }
    }

    #[cold]
    fn grow(&mut self) {
        let more = self.samples.len().max(SAMPLES_AT_ONCE);
        self.reserve_memory(more * SAMPLE_BYTES);
        if self.exceeded.is_none() {
            self.samples.reserve_exact(more);
        }
    }

    fn reserve_memory(&mut self, bytes: usize) {
        if let Some(memory) = &mut self.memory
            && let Err(cause) = memory.grow(bytes)
        {
            self.exceeded = Some(LimitExceeded::Memory(cause));
        }
    }

    /// Begins a point, for protocols that report the number of refused points: all samples and
    /// refusals up to the next point belong to it.
    pub fn begin_point(&mut self) {
        if self.points.len() == self.points.capacity() {
            let more = self.points.len().max(SAMPLES_AT_ONCE);
            self.reserve_memory(more * size_of::<Point>());
            if self.exceeded.is_none() {
                self.points.reserve_exact(more);
            }
        }
        if self.exceeded.is_none() {
            self.points.push(Point { first: self.samples.len() as u32, is_refused: false });
        }
    }

    /// Adds a sample, for protocols that use non-finite numbers for "no value"; refuses such a
    /// value.
    pub fn push_finite(&mut self, target: Target, at: UnixMillis, value: f64) {
        if value.is_finite() {
            self.push(target, at, value, 0);
        } else {
            let message = || format!("value {value} is not a finite number");
            self.refuse(RefusalReason::NotFinite, 1, message);
        }
    }

    /// Counts samples that the decoder refuses.
    pub fn refuse(&mut self, reason: RefusalReason, count: u64, message: impl FnOnce() -> String) {
        self.refused.add_many(reason, count, message);
        if let Some(point) = self.points.last_mut() {
            point.is_refused |= count > 0;
        }
    }

    /// Returns true when the request is refused as a whole and the rest is not needed. Decoders
    /// check it before each costly part.
    pub fn is_full(&self) -> bool {
        self.exceeded.is_some()
    }

    /// Returns the number of samples so far without refused ones.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Returns the bytes of the histograms so far.
    pub fn histogram_bytes(&self) -> usize {
        self.histogram_bytes
    }

    /// Returns true when there are no samples yet.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// Returns the refusals since the last call, for a caller that knows their location.
    pub fn take_refusals(&mut self) -> Option<Refusals> {
        (!self.refused.is_empty()).then(|| std::mem::take(&mut self.refused))
    }

    /// Returns true when parts of this size can form a series; otherwise refuses its samples.
    /// Decoders check it before they write the same parts for each of many samples.
    pub fn fits(&mut self, bytes: usize, samples: u64) -> bool {
        let limit = self.limits.series_bytes_max();
        if bytes > limit {
            self.refuse(RefusalReason::BadSeries, samples, || {
                format!(
                    "a series of {bytes} bytes is longer than {limit}; shorten its names and \
                     values"
                )
            });
        }
        bytes <= limit
    }

    /// Returns the samples and releases the cache.
    pub fn finish(self) -> DecodedRows {
        let Self { cache, samples, histograms, points, .. } = self;
        let Self { definitions, declared, refused, exceeded, .. } = self;
        DecodedRows {
            generation: cache.generation(),
            samples,
            histograms,
            points,
            definitions,
            declared,
            refused,
            exceeded,
        }
    }
}
