//! What the decoders of protocols fill that name a series in each row: samples of series that are
//! known by a fingerprint of how the sender writes them, so that a known series costs one lookup and
//! no allocation.

use std::{collections::HashMap, sync::Arc};

use foldhash::fast::FixedState;

use super::{
    memory::{HeldMemory, NoMemory},
    refusals::Refusals,
    series_cache::{Fingerprint, Resolved, SeriesCache},
};
use crate::{
    model::{
        AcceptedBatch, CountsOnce, DefinitionVerdict, Kind, SeriesId, SeriesInfo, SeriesKey,
        SeriesLimits, UnixMillis, is_stale_marker,
    },
    policy::{Admission, RefusalReason},
};

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
    new: HashMap<Fingerprint, u32, FixedState>,
    definitions: Vec<(Fingerprint, SeriesInfo)>,
    refused: Refusals,
    definitions_max: usize,
    memory: Option<&'a mut HeldMemory>,
    excess: Option<Excess>,
}

/// The samples of one request, decoded, with the series that have to be made known first.
#[derive(Debug)]
pub struct Decoded {
    /// What the cache's entries belonged to.
    generation: u64,
    samples: Vec<Row>,
    definitions: Vec<(Fingerprint, SeriesInfo)>,
    refused: Refusals,
    /// Why the request is to be refused as a whole.
    pub excess: Option<Excess>,
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
        self.definitions
            .push((fingerprint, SeriesInfo { key, kind, unit, sender: self.sender.into() }));
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
        if let Some(memory) = &mut self.memory
            && let Err(cause) = memory.grow(more * SAMPLE_BYTES)
        {
            self.excess = Some(Excess::Memory(cause));
        }
        if self.excess.is_none() {
            self.samples.reserve_exact(more);
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
                     values or raise limits.tags_max, name_bytes_max or value_bytes_max"
                )
            });
        }
        bytes <= limit
    }

    /// The samples, without the hold on the cache.
    pub fn finish(self) -> Decoded {
        let Self { cache, samples, definitions, refused, excess, .. } = self;
        Decoded { generation: cache.generation(), samples, definitions, refused, excess }
    }
}

impl Decoded {
    /// The series that are not known yet, in the order in which `admit` wants the verdicts.
    pub fn definitions(&self) -> Vec<SeriesInfo> {
        self.definitions.iter().map(|(_, definition)| definition.clone()).collect()
    }

    /// Samples, refused ones not included.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// Judges every sample; `kind` and `name` are asked for few of them. Returns the batch to write and what was refused.
    pub fn admit(
        self,
        verdicts: &[DefinitionVerdict],
        cache: &mut SeriesCache,
        admission: &Admission,
        (kind, name): (impl Fn(SeriesId) -> Option<Kind>, impl Fn(SeriesId) -> Option<String>),
        window_ms: i64,
    ) -> (AcceptedBatch, Refusals) {
        let Self { generation, samples, definitions, mut refused, .. } = self;
        // Else series were deleted or renamed meanwhile, perhaps these.
        let is_current = cache.generation() == generation;
        let settled: Vec<_> = verdicts.iter().map(|verdict| settle(*verdict)).collect();
        for ((fingerprint, _), resolved) in definitions.iter().zip(&settled) {
            // A limit may be raised, and other series may be deleted: it is asked for again.
            if let Resolved::Series(_) = resolved
                && is_current
            {
                cache.insert(*fingerprint, *resolved);
            }
        }
        let mut batch = AcceptedBatch {
            counts_once: CountsOnce::ByTime { window_ms },
            ..AcceptedBatch::default()
        };
        let resolve = |row: &Row| match row.target {
            TargetKind::Series(id) => Resolved::Series(id),
            TargetKind::Refused(reason) => Resolved::Refused(reason),
            TargetKind::New(index) => settled[index as usize],
        };
        let has_starts = samples.iter().any(|row| row.start != 0);
        let plain = |row: &Row| match resolve(row) {
            Resolved::Series(id) => admission.check(row.at, row.value, || None).ok().map(|()| id),
            Resolved::Refused(_) => None,
        };
        // Most often that is all of them.
        let rest = take_plain(&samples, plain, has_starts, &mut batch);
        for row in rest {
            let resolved = resolve(row);
            // A stale marker is no number, but all else of it is checked.
            let number = if is_stale_marker(row.value) { 0.0 } else { row.value };
            let verdict = match resolved {
                Resolved::Refused(reason) => Err(reason),
                Resolved::Series(id) => admission.check(row.at, number, || kind(id)).map(|()| id),
            };
            match verdict {
                Ok(id) => {
                    batch.series.push(id);
                    batch.times.push(row.at.0);
                    let is_nan = row.value.is_nan() && !is_stale_marker(row.value);
                    batch.values.push(if is_nan { f64::NAN } else { row.value });
                    if has_starts {
                        batch.starts.push(row.start);
                    }
                }
                Err(reason) => {
                    refused.add(reason, || {
                        let series = match row.target {
                            TargetKind::Series(id) => name(id),
                            TargetKind::New(index) => {
                                Some(definitions[index as usize].1.key.to_string())
                            }
                            // What is wrong with it was said when it was met first.
                            TargetKind::Refused(_) => None,
                        };
                        let message = admission.explain(reason, row.at, row.value);
                        (series.unwrap_or_default(), message)
                    });
                }
            }
        }
        if let Some(first) = batch.times.first().copied()
            && batch.times.iter().all(|at| *at == first)
        {
            batch.times.truncate(1);
        }
        (batch, refused)
    }
}

/// A sample whose series has a number of the caller's own; nothing of it is judged yet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Numbered {
    /// The series, or why it is refused.
    pub series: Result<SeriesId, RefusalReason>,
    /// When it was taken.
    pub at: UnixMillis,
    /// The value.
    pub value: f64,
    /// Since when a counter counts, 0 when not known.
    pub start: i64,
}

impl Decoded {
    /// The samples one by one, for a caller that keeps no dictionary but numbers the series as
    /// they come: `number` is called once for each new one.
    pub fn number(
        self,
        cache: &mut SeriesCache,
        mut number: impl FnMut(SeriesInfo) -> SeriesId,
    ) -> impl Iterator<Item = Numbered> {
        let mut numbers = Vec::with_capacity(self.definitions.len());
        for (fingerprint, definition) in self.definitions {
            let id = number(definition);
            cache.insert(fingerprint, Resolved::Series(id));
            numbers.push(id);
        }
        self.samples.into_iter().map(move |row| {
            let series = match row.target {
                TargetKind::Series(id) => Ok(id),
                TargetKind::Refused(reason) => Err(reason),
                TargetKind::New(index) => Ok(numbers[index as usize]),
            };
            Numbered { series, at: row.at, value: row.value, start: row.start }
        })
    }
}

/// Takes samples over, column by column, up to the first that is to be looked at closely; returns those
/// from there on.
fn take_plain<'r>(
    samples: &'r [Row],
    plain: impl FnMut(&Row) -> Option<SeriesId>,
    has_starts: bool,
    batch: &mut AcceptedBatch,
) -> &'r [Row] {
    batch.series.reserve_exact(samples.len());
    batch.times.reserve_exact(samples.len());
    batch.values.reserve_exact(samples.len());
    batch.series.extend(samples.iter().map_while(plain));
    let (taken, rest) = samples.split_at(batch.series.len());
    batch.times.extend(taken.iter().map(|row| row.at.0));
    batch.values.extend(taken.iter().map(|row| row.value));
    if has_starts {
        batch.starts.extend(taken.iter().map(|row| row.start));
    }
    rest
}

fn settle(verdict: DefinitionVerdict) -> Resolved {
    match verdict {
        DefinitionVerdict::Known(id) | DefinitionVerdict::KindConflict(id, _) => {
            Resolved::Series(id)
        }
        DefinitionVerdict::StoreLimit => Resolved::Refused(RefusalReason::SeriesLimit),
        DefinitionVerdict::SenderLimit => Resolved::Refused(RefusalReason::SenderSeriesLimit),
    }
}
