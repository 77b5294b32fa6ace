//! Resolution and checks of the samples of a batch.
//!
//! Must never know: the registration of series.

use granary_protocol::BatchView;

use super::{Resolved, Session, named};
use crate::{
    ingest::refusals::Refusals,
    model::{AcceptedBatch, BatchNumber, CountsOnce, Kind, SeriesId},
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
        kind: impl Fn(SeriesId) -> Option<Kind>,
        name: impl Fn(SeriesId) -> Option<String>,
    ) -> Result<Admitted, UnknownRef> {
        let view = self.view;
        let samples = view.len() as u64;
        let number = BatchNumber { sender: view.agent.into(), epoch: view.epoch, seq: view.seq };
        let is_numbered = view.seq != 0;
        // Epochs are times: a future one would outlive the sender's later epochs.
        if is_numbered && view.epoch > self.admission.newest.0 {
            let refused = Refusals::of_batch(RefusalReason::FarNumber, samples);
            return Ok(Admitted { batch: AcceptedBatch::default(), samples, refused });
        }
        let mut batch = AcceptedBatch {
            counts_once: if is_numbered { CountsOnce::ByNumber(number) } else { CountsOnce::Never },
            times: view.times().collect(),
            starts: view.starts().collect(),
            ..AcceptedBatch::default()
        };
        self.take_plain(&mut batch);
        let refused = self.judge_rest(&mut batch, kind, name)?;
        Ok(Admitted { batch, samples, refused })
    }

    /// Adds samples up to the first that needs its kind for the check; in most batches that is all
    /// of them.
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
        kind: impl Fn(SeriesId) -> Option<Kind>,
        name: impl Fn(SeriesId) -> Option<String>,
    ) -> Result<Refusals, UnknownRef> {
        let mut refused = Refusals::default();
        // The vector is created at the first refusal: most batches have none.
        let mut kept: Option<Vec<usize>> = None;
        for (index, reference, value) in self.all().skip(batch.series.len()) {
            let at = batch.time(index);
            let keep = |id| Ok((id, self.admission.keep(at, value, || kind(id))?));
            match self.series(reference)?.and_then(keep) {
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
                        let (series, message) = self.fault(reference, &name);
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
        Ok(refused)
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
    fn series(&self, reference: u32) -> Result<Result<SeriesId, RefusalReason>, UnknownRef> {
        match self.resolve(reference) {
            Resolved::Unknown if (reference as usize) < self.sender_series_max => {
                Err(UnknownRef { sender: self.view.agent.to_owned(), reference })
            }
            Resolved::Unknown => Ok(Err(RefusalReason::SenderSeriesLimit)),
            Resolved::Refused(reason) => Ok(Err(reason)),
            Resolved::Series(id) => Ok(Ok(id)),
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
            (Resolved::Series(id), _) => (name(id), None),
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
