//! Resolution and checks of the samples of a batch.
//!
//! Must never know: the registration of series.

use granary_protocol::{BatchView, read_histograms};

use super::{ResolvedRef, Session, name_of};
use crate::{
    ingest::refusals::Refusals,
    model::{
        AcceptedBatch, BatchNumber, Deduplication, Histogram, HistogramSample, Kind, STALE_MARKER,
        SeriesId, UnixMillis, is_stale_marker, observation,
    },
    policy::{Admission, RefusalReason},
};

/// A ref that the collector does not know; the sender must define it and send the batch again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "ref {reference} of agent {sender:?} is not known here: send the batch again with the \
     definitions of all its refs"
)]
pub struct UnknownRef {
    sender: String,
    reference: u32,
}

/// A batch that passed all checks, with the refused samples.
#[derive(Debug)]
pub struct AdmittedBatch {
    /// The batch to write.
    pub batch: AcceptedBatch,
    /// The number of samples in the batch, including refused ones.
    pub samples: u64,
    /// The samples refused permanently.
    pub refused: Refusals,
    /// Series that must get their former kind again before the batch is written.
    pub revived: Vec<SeriesId>,
}

/// The series that stores a sample whose ref was defined before the series changed its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormerSeries {
    /// The series of the sample.
    Series(SeriesId),
    /// The series of the sample, once it has its former kind again.
    Revived(SeriesId),
    /// The sample is refused, because the series keeps its kind.
    Refused,
    /// The series was deleted.
    Unknown,
}

/// Functions that return facts about series; they are called for few samples.
pub struct SeriesLookup<K, C, N, F> {
    /// The kind of a series.
    pub kind: K,
    /// The class of a series at a time.
    pub class: C,
    /// The name of a series.
    pub name: N,
    /// The series that stores a sample of a former series at a time.
    pub former: F,
}

/// A batch with everything that its checks need.
pub(super) struct Samples<'a> {
    pub(super) view: &'a BatchView<'a>,
    /// The definitions of its sender in its epoch.
    pub(super) session: Option<&'a Session>,
    pub(super) sender_series_max: usize,
    pub(super) admission: &'a Admission,
}

impl Samples<'_> {
    /// Resolves and checks each sample, see [`super::Sessions::admit`].
    pub(super) fn admit(
        &self,
        lookup: &SeriesLookup<
            impl Fn(SeriesId) -> Option<Kind>,
            impl Fn(SeriesId, UnixMillis) -> usize,
            impl Fn(SeriesId) -> Option<String>,
            impl Fn(SeriesId, UnixMillis) -> FormerSeries,
        >,
    ) -> Result<AdmittedBatch, UnknownRef> {
        let view = self.view;
        let samples = view.len() as u64;
        let number = BatchNumber { sender: view.agent.into(), epoch: view.epoch, seq: view.seq };
        let is_numbered = view.seq != 0;
        // Epochs are times: a future one would outlive the sender's later epochs.
        if is_numbered && view.epoch > self.admission.newest.0 {
            let refused = Refusals::of_batch(RefusalReason::FarNumber, samples);
            let (batch, revived) = (AcceptedBatch::default(), Vec::new());
            return Ok(AdmittedBatch { batch, samples, refused, revived });
        }
        let mut batch = AcceptedBatch {
            deduplication: if is_numbered {
                Deduplication::ByNumber(number)
            } else {
                Deduplication::Never
            },
            times: view.times().collect(),
            starts: view.starts().collect(),
            ..AcceptedBatch::default()
        };
        if self.view.histograms.is_empty() {
            self.accept_plain(&mut batch);
        }
        let (refused, revived) = self.check_rest(&mut batch, lookup)?;
        Ok(AdmittedBatch { batch, samples, refused, revived })
    }

    /// Adds samples up to the first that needs its kind for the check; in most batches, these are
    /// all samples.
    fn accept_plain(&self, batch: &mut AcceptedBatch) {
        let mut series = Vec::with_capacity(self.view.len());
        series.extend(self.iter().map_while(|(index, reference, value)| {
            let ResolvedRef::Series(id) = self.resolve(reference) else { return None };
            self.admission.check(batch.time(index), value, || None).ok().map(|()| id)
        }));
        batch.values.reserve_exact(self.view.len());
        batch.values.extend(self.view.values().take(series.len()));
        batch.series = series;
    }

    /// Checks the samples after those of `accept_plain`; returns the refusals, and the series that
    /// must get their former kind again.
    fn check_rest(
        &self,
        batch: &mut AcceptedBatch,
        lookup: &SeriesLookup<
            impl Fn(SeriesId) -> Option<Kind>,
            impl Fn(SeriesId, UnixMillis) -> usize,
            impl Fn(SeriesId) -> Option<String>,
            impl Fn(SeriesId, UnixMillis) -> FormerSeries,
        >,
    ) -> Result<(Refusals, Vec<SeriesId>), UnknownRef> {
        let (mut refused, mut revived) = (Refusals::default(), Vec::new());
        // The vector is created at the first refusal: most batches have none.
        let mut kept: Option<Vec<usize>> = None;
        // The bytes were decoded before.
        let histograms = read_histograms(self.view.histograms, self.view.len());
        let mut histograms = histograms.map_while(Result::ok).peekable();
        for (index, reference, value) in self.iter().skip(batch.series.len()) {
            let at = batch.time(index);
            let mut class = 0;
            let histogram = histograms.next_if(|(of_sample, _)| *of_sample as usize == index);
            let (mut found, value) = SampleHistogram::of(histogram.map(|found| found.1), value);
            let keep = |id| {
                let kind = || (lookup.kind)(id);
                found.check_series(self.is_histogram(reference, kind), value)?;
                let class_of = || {
                    class = (lookup.class)(id, at);
                    class
                };
                Ok((id, self.admission.keep(at, value, kind, class_of)?))
            };
            let former = |id| {
                // A stale marker ends the series with the kind that it had.
                if is_stale_marker(value) {
                    FormerSeries::Series(id)
                } else {
                    (lookup.former)(id, at)
                }
            };
            match self.series(reference, former, &mut revived)?.and_then(keep) {
                Ok((id, mut value)) => {
                    if self.is_observation(reference, value) {
                        found.histogram = Some(observation(value));
                        value = 1.0;
                    }
                    let index_kept = batch.series.len() as u32;
                    let sample = |histogram| HistogramSample { index: index_kept, histogram };
                    batch.histograms.extend(found.histogram.map(sample));
                    batch.series.push(id);
                    batch.values.push(value);
                    if let Some(kept) = &mut kept {
                        kept.push(index);
                    }
                }
                Err(reason) => {
                    kept.get_or_insert_with(|| (0..index).collect());
                    refused.add(reason, || {
                        let (series, message) = self.fault(reference, &lookup.name);
                        let explain = || self.admission.explain(reason, (at, value), class);
                        (series, message.or(found.fault).unwrap_or_else(explain))
                    });
                }
            }
        }
        if let Some(kept) = kept {
            retain_samples(&mut batch.times, &kept, self.view.len());
            retain_samples(&mut batch.starts, &kept, self.view.len());
        }
        Ok((refused, revived))
    }

    /// Iterates over the indexes, refs and values of all samples.
    fn iter(&self) -> impl Iterator<Item = (usize, u32, f64)> {
        let samples = self.view.refs().zip(self.view.values()).enumerate();
        samples.map(|(index, (reference, value))| (index, reference, value))
    }

    fn resolve(&self, reference: u32) -> ResolvedRef {
        self.session.map_or(ResolvedRef::Unknown, |session| session.get(reference))
    }

    /// Returns true when the samples of a ref are histograms.
    fn is_histogram(&self, reference: u32, kind: impl FnOnce() -> Option<Kind>) -> bool {
        match self.resolve(reference) {
            ResolvedRef::Histograms(_) => true,
            ResolvedRef::Former(_) => kind().is_some_and(Kind::is_histogram),
            ResolvedRef::Series(_)
            | ResolvedRef::Observations(_)
            | ResolvedRef::Unknown
            | ResolvedRef::Refused(_) => false,
        }
    }

    /// Returns true when the sample of a ref becomes a histogram of one observation. A stale marker
    /// ends the series.
    fn is_observation(&self, reference: u32, value: f64) -> bool {
        matches!(self.resolve(reference), ResolvedRef::Observations(_)) && !is_stale_marker(value)
    }

    /// Returns the series of a ref, or the reason for its refusal.
    fn series(
        &self,
        reference: u32,
        former: impl Fn(SeriesId) -> FormerSeries,
        revived: &mut Vec<SeriesId>,
    ) -> Result<Result<SeriesId, RefusalReason>, UnknownRef> {
        let unknown = || Err(UnknownRef { sender: self.view.agent.to_owned(), reference });
        match self.resolve(reference) {
            ResolvedRef::Unknown if (reference as usize) < self.sender_series_max => unknown(),
            ResolvedRef::Unknown => Ok(Err(RefusalReason::SenderSeriesLimit)),
            ResolvedRef::Refused(reason) => Ok(Err(reason)),
            ResolvedRef::Series(id)
            | ResolvedRef::Histograms(id)
            | ResolvedRef::Observations(id) => Ok(Ok(id)),
            ResolvedRef::Former(id) => match former(id) {
                FormerSeries::Series(id) => Ok(Ok(id)),
                FormerSeries::Revived(whole) => {
                    revived.push(id);
                    Ok(Ok(whole))
                }
                FormerSeries::Refused => Ok(Err(RefusalReason::KindConflict)),
                FormerSeries::Unknown => unknown(),
            },
        }
    }

    /// Returns the name of a refused sample's series, and the fault in its definition.
    fn fault(
        &self,
        reference: u32,
        name: impl Fn(SeriesId) -> Option<String>,
    ) -> (String, Option<String>) {
        let fault = self.session.and_then(|session| session.faults.get(&reference));
        let (series, message) = match (self.resolve(reference), fault) {
            (
                ResolvedRef::Series(id)
                | ResolvedRef::Histograms(id)
                | ResolvedRef::Observations(id)
                | ResolvedRef::Former(id),
                _,
            ) => (name(id), None),
            (_, Some(fault)) => (Some(fault.series.clone()), fault.message.clone()),
            // The sender is above its limit of series; this batch names the series, or an earlier
            // one did.
            (_, None) => {
                let mut defined = self.view.series.iter();
                (defined.find(|definition| definition.reference == reference).map(name_of), None)
            }
        };
        (series.unwrap_or_else(|| format!("ref {reference}")), message)
    }
}

/// The histogram of a sample.
#[derive(Debug, Default)]
struct SampleHistogram {
    /// True when the sample has a histogram, also a stale or refused one.
    is_present: bool,
    histogram: Option<Histogram>,
    /// The reason for the refusal of the sample, with the remedy.
    fault: Option<String>,
}

impl SampleHistogram {
    /// Checks a histogram, and returns it with the value of the sample. A stale histogram is a
    /// stale marker.
    fn of(histogram: Option<Histogram>, value: f64) -> (Self, f64) {
        let Some(histogram) = histogram else { return (Self::default(), value) };
        let mut found = Self { is_present: true, ..Self::default() };
        if histogram.is_stale() {
            return (found, STALE_MARKER);
        }
        let schema = histogram.schema.into();
        match histogram.checked_parts(schema) {
            Ok(histogram) => {
                let count = histogram.count;
                found.histogram = Some(histogram);
                (found, count)
            }
            Err(fault) => {
                found.fault = Some(fault.to_string());
                (found, value)
            }
        }
    }

    /// Checks that a series of histograms gets histograms, and a series of numbers gets numbers.
    fn check_series(&mut self, of_histograms: bool, value: f64) -> Result<(), RefusalReason> {
        if self.fault.is_none() && of_histograms != self.is_present && !is_stale_marker(value) {
            let fault = if of_histograms {
                "the series has native histograms, and the sample is a number: send its histogram \
                 in samples.histograms, or define a kind of numbers under another name"
            } else {
                "the series has numbers, and the sample is a native histogram: define a kind of \
                 histograms under another name"
            };
            self.fault = Some(fault.to_owned());
        }
        if self.fault.is_some() { Err(RefusalReason::BadHistogram) } else { Ok(()) }
    }
}

/// Keeps the entries of a column that has one entry per sample.
fn retain_samples(column: &mut Vec<i64>, kept: &[usize], samples: usize) {
    if column.len() == samples {
        *column = kept.iter().map(|index| column[*index]).collect();
    }
}
