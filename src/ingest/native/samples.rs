//! Resolution and checks of the samples of a batch.
//!
//! Must never know: the registration of series.

use granary_protocol::BatchView;

use super::{Resolved, Session, named};
use crate::{
    ingest::refusals::Refusals,
    model::{AcceptedBatch, BatchNumber, CountsOnce, Kind, SeriesId, UnixMillis, is_stale_marker},
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
pub struct Admitted {
    /// The batch to write.
    pub batch: AcceptedBatch,
    /// The number of samples in the batch, including refused ones.
    pub samples: u64,
    /// The samples refused permanently.
    pub refused: Refusals,
    /// Series that must get their former kind again before the batch is written.
    pub revived: Vec<SeriesId>,
}

/// The place of a sample whose series had another kind when its sender defined it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormerPlace {
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
pub struct SeriesLookup<K, N, F> {
    /// The kind of a series.
    pub kind: K,
    /// The name of a series.
    pub name: N,
    /// The place of a sample of a former series at a time.
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
    /// See [`super::Sessions::admit`].
    pub(super) fn admit(
        &self,
        lookup: &SeriesLookup<
            impl Fn(SeriesId) -> Option<Kind>,
            impl Fn(SeriesId) -> Option<String>,
            impl Fn(SeriesId, UnixMillis) -> FormerPlace,
        >,
    ) -> Result<Admitted, UnknownRef> {
        let view = self.view;
        let samples = view.len() as u64;
        let number = BatchNumber { sender: view.agent.into(), epoch: view.epoch, seq: view.seq };
        let is_numbered = view.seq != 0;
        // Epochs are times: a future one would outlive the sender's later epochs.
        if is_numbered && view.epoch > self.admission.newest.0 {
            let refused = Refusals::of_batch(RefusalReason::FarNumber, samples);
            let (batch, revived) = (AcceptedBatch::default(), Vec::new());
            return Ok(Admitted { batch, samples, refused, revived });
        }
        let mut batch = AcceptedBatch {
            counts_once: if is_numbered { CountsOnce::ByNumber(number) } else { CountsOnce::Never },
            times: view.times().collect(),
            starts: view.starts().collect(),
            ..AcceptedBatch::default()
        };
        self.take_plain(&mut batch);
        let (refused, revived) = self.judge_rest(&mut batch, lookup)?;
        Ok(Admitted { batch, samples, refused, revived })
    }

    /// Adds samples up to the first that needs its kind for the check; in most batches, these are
    /// all samples.
    fn take_plain(&self, batch: &mut AcceptedBatch) {
        let mut series = Vec::with_capacity(self.view.len());
        series.extend(self.all().map_while(|(index, reference, value)| {
            let Resolved::Series(id) = self.resolve(reference) else { return None };
            self.admission.check(batch.time(index), value, || None).ok().map(|()| id)
        }));
        batch.values.reserve_exact(self.view.len());
        batch.values.extend(self.view.values().take(series.len()));
        batch.series = series;
    }

    fn judge_rest(
        &self,
        batch: &mut AcceptedBatch,
        lookup: &SeriesLookup<
            impl Fn(SeriesId) -> Option<Kind>,
            impl Fn(SeriesId) -> Option<String>,
            impl Fn(SeriesId, UnixMillis) -> FormerPlace,
        >,
    ) -> Result<(Refusals, Vec<SeriesId>), UnknownRef> {
        let (mut refused, mut revived) = (Refusals::default(), Vec::new());
        // The vector is created at the first refusal: most batches have none.
        let mut kept: Option<Vec<usize>> = None;
        for (index, reference, value) in self.all().skip(batch.series.len()) {
            let at = batch.time(index);
            let keep = |id| Ok((id, self.admission.keep(at, value, || (lookup.kind)(id))?));
            let former = |id| {
                // A stale marker ends the series with the kind that it had.
                if is_stale_marker(value) {
                    FormerPlace::Series(id)
                } else {
                    (lookup.former)(id, at)
                }
            };
            match self.series(reference, former, &mut revived)?.and_then(keep) {
                Ok((id, value)) => {
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
                        let explain = || self.admission.explain(reason, at, value);
                        (series, message.unwrap_or_else(explain))
                    });
                }
            }
        }
        if let Some(kept) = kept {
            keep(&mut batch.times, &kept, self.view.len());
            keep(&mut batch.starts, &kept, self.view.len());
        }
        Ok((refused, revived))
    }

    /// Iterates over the places, refs and values of all samples.
    fn all(&self) -> impl Iterator<Item = (usize, u32, f64)> {
        let samples = self.view.refs().zip(self.view.values()).enumerate();
        samples.map(|(index, (reference, value))| (index, reference, value))
    }

    fn resolve(&self, reference: u32) -> Resolved {
        self.session.map_or(Resolved::Unknown, |session| session.get(reference))
    }

    /// Returns the series of a ref, or the reason for its refusal.
    fn series(
        &self,
        reference: u32,
        former: impl Fn(SeriesId) -> FormerPlace,
        revived: &mut Vec<SeriesId>,
    ) -> Result<Result<SeriesId, RefusalReason>, UnknownRef> {
        let unknown = || Err(UnknownRef { sender: self.view.agent.to_owned(), reference });
        match self.resolve(reference) {
            Resolved::Unknown if (reference as usize) < self.sender_series_max => unknown(),
            Resolved::Unknown => Ok(Err(RefusalReason::SenderSeriesLimit)),
            Resolved::Refused(reason) => Ok(Err(reason)),
            Resolved::Series(id) => Ok(Ok(id)),
            Resolved::Former(id) => match former(id) {
                FormerPlace::Series(id) => Ok(Ok(id)),
                FormerPlace::Revived(whole) => {
                    revived.push(id);
                    Ok(Ok(whole))
                }
                FormerPlace::Refused => Ok(Err(RefusalReason::KindConflict)),
                FormerPlace::Unknown => unknown(),
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
            (Resolved::Series(id) | Resolved::Former(id), _) => (name(id), None),
            (_, Some(fault)) => (Some(fault.series.clone()), fault.message.clone()),
            // The sender is above its limit of series; this batch names the series, or an earlier
            // one did.
            (_, None) => {
                let mut defined = self.view.series.iter();
                (defined.find(|definition| definition.reference == reference).map(named), None)
            }
        };
        (series.unwrap_or_else(|| format!("ref {reference}")), message)
    }
}

/// Keeps the entries of a column that has one entry per sample.
fn keep(column: &mut Vec<i64>, kept: &[usize], samples: usize) {
    if column.len() == samples {
        *column = kept.iter().map(|index| column[*index]).collect();
    }
}
