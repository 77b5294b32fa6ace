//! The series of batches: refs and definitions become series, and each sample is judged.
//!
//! Must never know: the response to a request.

use granary_protocol::BatchView;

use super::{BatchCollector, ObservationMemory, answering::ResponsePart};
use crate::{
    actors::{
        WriteFault,
        collector::{answers::CollectFault, parts::CollectorParts},
    },
    ingest::{
        native::{AdmittedBatch, DecidedSeries, FormerSeries, SeriesLookup, Unknown},
        protocol::BatchEncoding,
    },
    model::{AcceptedBatch, SeriesId, SeriesInfo, UnixMillis},
    policy::RefusalReason,
    store::Store,
};

/// The number of attempts to resolve a request's series while series are deleted or renamed; after
/// that, the sender must retry.
const RESOLVE_ATTEMPTS: usize = 4;
const SERIES_CHANGE: &str = "series were deleted or renamed during the request";

/// The accepted part of each batch of a request, and the data for its response.
pub(super) type JudgedBatches = (Vec<AcceptedBatch>, Vec<ResponsePart>);

impl BatchCollector {
    /// Resolves the series of all batches, and judges each sample. New series are registered
    /// durably before any of their samples is written. Meanwhile, other requests may change the
    /// sessions, or delete or rename series; therefore, everything is resolved again.
    pub(super) async fn resolve(
        &self,
        views: &[BatchView<'_>],
        encoding: BatchEncoding,
        memory: &mut ObservationMemory,
        parts: &CollectorParts,
    ) -> Result<JudgedBatches, CollectFault> {
        let mut decided = DecidedSeries::default();
        for _ in 1..RESOLVE_ATTEMPTS {
            let (judged, unknown) = self.judge(views, encoding, &decided, memory, parts)?;
            if unknown.is_empty() {
                return Ok(judged);
            }
            let Unknown { new, of_other_kind } = unknown;
            if !new.is_empty() {
                let keys = new.iter().map(|series| (series.key.clone(), series.kind));
                let keys: Vec<_> = keys.collect();
                let verdicts = parts.writer.define(new).await?;
                // The dictionary knows the other series from now on.
                for ((key, kind), verdict) in keys.into_iter().zip(verdicts) {
                    // The next attempt changes the kind, or refuses the series.
                    if let Err(reason) = RefusalReason::settle(verdict, kind)
                        && reason != RefusalReason::KindConflict
                    {
                        decided.insert(key, reason);
                    }
                }
            }
            if !of_other_kind.is_empty() {
                let keys = of_other_kind.iter().map(|series| series.key.clone());
                decided.extend(keys.map(|key| (key, RefusalReason::KindConflict)));
                parts.writer.change_kinds(of_other_kind).await?;
            }
        }
        let (judged, unknown) = self.judge(views, encoding, &decided, memory, parts)?;
        if unknown.is_empty() { Ok(judged) } else { Err(WriteFault::Busy(SERIES_CHANGE).into()) }
    }

    /// Judges the batches one by one, each right after its definitions. Stops only at an unknown
    /// ref or without memory, and judges no batch after a series that must be registered.
    pub(super) fn judge(
        &self,
        views: &[BatchView<'_>],
        encoding: BatchEncoding,
        decided: &DecidedSeries,
        memory: &mut ObservationMemory,
        parts: &CollectorParts,
    ) -> Result<(JudgedBatches, Unknown), CollectFault> {
        let store = &parts.store;
        let admission = parts.admission();
        let mut judged = (Vec::with_capacity(views.len()), Vec::with_capacity(views.len()));
        let (mut unknown, now) = (Unknown::default(), parts.clock.now());
        let mut observations = 0;
        let mut sessions = self.sessions.borrow_mut();
        sessions.renew(&store.dictionary(), now);
        let kind = |series| store.dictionary().kind(series);
        let class = |series, at| store.class_at(series, at);
        let name = |series| {
            let dictionary = store.dictionary();
            let merged = dictionary.whole_of(series).unwrap_or(series);
            Some(dictionary.key(merged)?.to_string())
        };
        for view in views {
            let may_change_kind = encoding.declares_kinds(view.agent);
            if !view.series.is_empty() {
                let dictionary = &store.dictionary();
                let learned =
                    sessions.add_definitions(view, dictionary, decided, (may_change_kind, now));
                unknown.new.extend(learned.new);
                unknown.of_other_kind.extend(learned.of_other_kind);
            }
            if unknown.is_empty() {
                let former = |part, at| {
                    let former_series = series_of_former_kind(store, part, at);
                    let FormerSeries::Revived(whole) = former_series else { return former_series };
                    let is_decided = |key| decided.contains_key(key);
                    let is_decided = store.dictionary().key(whole).is_some_and(is_decided);
                    if may_change_kind && !is_decided {
                        former_series
                    } else {
                        FormerSeries::Refused
                    }
                };
                let lookup = SeriesLookup { kind, class, name, former };
                observations += sessions.observations(view);
                memory.hold(observations)?;
                let AdmittedBatch { batch, samples, refused, revived } =
                    sessions.admit(view, &admission, &lookup)?;
                let revived = revived.iter().filter_map(|part| revive(store, *part, view.agent));
                unknown.of_other_kind.extend(revived);
                judged.0.push(batch);
                judged.1.push(ResponsePart { seq: view.seq, samples, refused });
            }
        }
        Ok((judged, unknown))
    }
}

/// Returns the series of a sample whose series had another kind when the sender defined it. The
/// sample keeps the former kind when a later kind has samples at or after its time, or when no
/// later kind has samples.
fn series_of_former_kind(store: &Store, part: SeriesId, at: UnixMillis) -> FormerSeries {
    let dictionary = store.dictionary();
    let Some(whole) = dictionary.whole_of(part) else { return FormerSeries::Unknown };
    let is_same_kind = dictionary.kind(whole) == dictionary.kind(part);
    let parts = dictionary.parts(whole).iter().chain([&whole]);
    let later: Vec<_> = parts.copied().filter(|id| *id > part).collect();
    drop(dictionary);
    let beginning = UnixMillis::EARLIEST.plus(1);
    if store.have_samples_since(&later, at) || !store.have_samples_since(&later, beginning) {
        FormerSeries::Series(part)
    } else if is_same_kind {
        FormerSeries::Series(whole)
    } else {
        FormerSeries::Revived(whole)
    }
}

/// Returns the definition that changes the kind of a series back to that of one of its parts.
fn revive(store: &Store, part: SeriesId, sender: &str) -> Option<SeriesInfo> {
    let dictionary = store.dictionary();
    let merged = dictionary.info(dictionary.whole_of(part)?)?;
    Some(SeriesInfo { kind: dictionary.kind(part)?, sender: sender.into(), ..merged })
}
