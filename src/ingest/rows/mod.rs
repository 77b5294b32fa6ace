//! What the decoders of protocols fill that name a series in each row: samples of series that are
//! known by a fingerprint of how the sender writes them, so that a known series costs one lookup and
//! no allocation.

mod decoded;

use std::{collections::HashMap, sync::Arc};

use foldhash::fast::FixedState;

use super::{
    memory::{HeldMemory, NoMemory},
    refusals::Refusals,
    series_cache::{Fingerprint, Resolved, SeriesCache},
};
use crate::{
    model::{Kind, SeriesId, SeriesInfo, SeriesKey, SeriesLimits, UnixMillis},
    policy::RefusalReason,
};
pub use decoded::{Decoded, Numbered};

/// Where a sample belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target(TargetKind);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TargetKind {
    Series(SeriesId),
    Refused(RefusalReason),
    /// Index of a definition that is not known yet.
    New(u32),
}

/// A series as a decoder reads it.
#[derive(Debug)]
pub struct Described {
    /// Metric and tags.
    pub key: SeriesKey,
    /// Its kind, as far as the sender says or the name tells; a series that is known keeps its own.
    pub kind: Kind,
    /// Unit; empty when there is none.
    pub unit: Arc<str>,
}

#[derive(Debug, Clone, Copy)]
struct Row {
    target: TargetKind,
    at: UnixMillis,
    value: f64,
    start: i64,
}

/// A point of a protocol whose points have several samples each: those from `first` up to the next
/// point.
#[derive(Debug, Clone, Copy)]
struct Point {
    first: u32,
    /// Whether any part of it is refused.
    is_refused: bool,
}

/// Finds a series that is known.
pub type Find<'a> = &'a dyn Fn(&SeriesKey) -> Option<SeriesId>;

/// Memory that a sample takes until it is durable: here, as a batch, and in the journal's record.
const SAMPLE_BYTES: usize = size_of::<Row>() + 2 * 28;
/// Samples that memory is taken for at a time, at least.
const SAMPLES_AT_ONCE: usize = 256;

/// Why nothing more of a request is taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Excess {
    /// It brings more new series than it may.
    Series,
    /// There is no memory for its samples.
    Memory(NoMemory),
}

/// The samples of one request.
#[expect(missing_debug_implementations, reason = "it holds a closure")]
pub struct Rows<'a> {
    cache: &'a mut SeriesCache,
    find: Find<'a>,
    /// How long and how many the parts of a series may be.
    pub limits: &'a SeriesLimits,
    sender: &'a str,
    samples: Vec<Row>,
    points: Vec<Point>,
    new: HashMap<Fingerprint, u32, FixedState>,
    definitions: Vec<(Fingerprint, SeriesInfo)>,
    refused: Refusals,
    definitions_max: usize,
    memory: Option<&'a mut HeldMemory>,
    excess: Option<Excess>,
}

impl<'a> Rows<'a> {
    /// No samples yet. `sender` is whose new series are counted.
    pub fn new(
        cache: &'a mut SeriesCache,
        find: Find<'a>,
        limits: &'a SeriesLimits,
        sender: &'a str,
    ) -> Self {
        Self {
            cache,
            find,
            limits,
            sender,
            samples: Vec::new(),
            points: Vec::new(),
            new: HashMap::default(),
            definitions: Vec::new(),
            refused: Refusals::default(),
            definitions_max: usize::MAX,
            memory: None,
            excess: None,
        }
    }

    /// Bounds the new series, and takes memory for the samples.
    #[must_use]
    pub fn within(mut self, definitions_max: usize, memory: Option<&'a mut HeldMemory>) -> Self {
        (self.definitions_max, self.memory) = (definitions_max, memory);
        self
    }

    /// The series with this fingerprint; `describe` is called when it is not known here.
    pub fn series(
        &mut self,
        fingerprint: Fingerprint,
        describe: impl FnOnce(&SeriesLimits) -> Result<Described, String>,
    ) -> Target {
        if self.excess.is_some() {
            return Target(TargetKind::Refused(RefusalReason::SeriesLimit));
        }
        match self.cache.find(fingerprint) {
            Some(Resolved::Series(id)) => Target(TargetKind::Series(id)),
            Some(Resolved::Refused(reason)) => Target(TargetKind::Refused(reason)),
            None => match self.new.get(&fingerprint) {
                Some(index) => Target(TargetKind::New(*index)),
                None => Target(self.look_up(fingerprint, describe)),
            },
        }
    }

    fn look_up(
        &mut self,
        fingerprint: Fingerprint,
        describe: impl FnOnce(&SeriesLimits) -> Result<Described, String>,
    ) -> TargetKind {
        let described = match describe(self.limits) {
            Ok(described) => described,
            Err(message) => {
                let reason = RefusalReason::BadSeries;
                self.refused.explain(reason, message);
                self.cache.insert(fingerprint, Resolved::Refused(reason));
                return TargetKind::Refused(reason);
            }
        };
        if let Some(id) = (self.find)(&described.key) {
            self.cache.insert(fingerprint, Resolved::Series(id));
            return TargetKind::Series(id);
        }
        if self.definitions.len() == self.definitions_max {
            self.excess = Some(Excess::Series);
            return TargetKind::Refused(RefusalReason::SeriesLimit);
        }
        let index = self.definitions.len() as u32;
        let Described { key, kind, unit } = described;
        let before = self.definitions.last();
        let sender = before.map_or_else(|| self.sender.into(), |(_, info)| info.sender.clone());
        self.definitions.push((fingerprint, SeriesInfo { key, kind, unit, sender }));
        self.new.insert(fingerprint, index);
        TargetKind::New(index)
    }

    /// Adds a sample; `start` says since when a counter counts, 0 when not known.
    #[inline]
    pub fn push(&mut self, target: Target, at: UnixMillis, value: f64, start: i64) {
        if self.samples.len() == self.samples.capacity() {
            self.grow();
        }
        if self.excess.is_none() {
            self.samples.push(Row { target: target.0, at, value, start });
        }
    }

    #[cold]
    fn grow(&mut self) {
        let more = self.samples.len().max(SAMPLES_AT_ONCE);
        self.take_memory(more * SAMPLE_BYTES);
        if self.excess.is_none() {
            self.samples.reserve_exact(more);
        }
    }

    fn take_memory(&mut self, bytes: usize) {
        if let Some(memory) = &mut self.memory
            && let Err(cause) = memory.grow(bytes)
        {
            self.excess = Some(Excess::Memory(cause));
        }
    }

    /// Begins a point, for protocols whose senders are told how many points were refused: all samples
    /// and refusals up to the next one are parts of it.
    pub fn begin_point(&mut self) {
        if self.points.len() == self.points.capacity() {
            let more = self.points.len().max(SAMPLES_AT_ONCE);
            self.take_memory(more * size_of::<Point>());
            if self.excess.is_none() {
                self.points.reserve_exact(more);
            }
        }
        if self.excess.is_none() {
            self.points.push(Point { first: self.samples.len() as u32, is_refused: false });
        }
    }

    /// The same for protocols whose senders mean "no value" by a number that is not finite.
    pub fn push_finite(&mut self, target: Target, at: UnixMillis, value: f64) {
        if value.is_finite() {
            self.push(target, at, value, 0);
        } else {
            let message = || format!("value {value} is not a finite number");
            self.refuse(RefusalReason::NotFinite, 1, message);
        }
    }

    /// Counts samples that the decoder cannot take in.
    pub fn refuse(&mut self, reason: RefusalReason, count: u64, message: impl FnOnce() -> String) {
        self.refused.add_many(reason, count, message);
        if let Some(point) = self.points.last_mut() {
            point.is_refused |= count > 0;
        }
    }

    /// Whether nothing more is taken in, because the request is refused as a whole. Decoders ask it
    /// before each part that costs work.
    pub fn is_full(&self) -> bool {
        self.excess.is_some()
    }

    /// Samples so far, refused ones not included.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Whether there are no samples yet.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// What was refused or explained since this was asked last, for a caller that knows the place.
    pub fn take_refused(&mut self) -> Option<Refusals> {
        (!self.refused.is_empty()).then(|| std::mem::take(&mut self.refused))
    }

    /// Whether parts of so many bytes can be a series; if not, its samples are refused. Decoders
    /// ask it where the same parts would be written out for each of many samples.
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

    /// The samples, without the hold on the cache.
    pub fn finish(self) -> Decoded {
        let Self { cache, samples, points, definitions, refused, excess, .. } = self;
        Decoded { generation: cache.generation(), samples, points, definitions, refused, excess }
    }
}
