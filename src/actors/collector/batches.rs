//! The collector's path for batches: decode, resolve refs, judge, write. Numbers identify
//! duplicates.
//!
//! Must never know: encodings of batches, HTTP.

mod answering;
mod resolving;

use std::{cell::RefCell, collections::BTreeMap};

use actix::prelude::Message;
use bytes::Bytes;
use granary_protocol::{BatchView, IngestAnswer};

use super::{
    answers::CollectFault,
    parts::CollectorParts,
    replacing::{self, check_replaced},
    spreading,
};
use crate::{
    ingest::{
        memory::{NoMemory, ReservedMemory},
        native::{DecidedSeries, Sessions},
        protocol::{self, BatchEncoding, DecodedBody},
    },
    model::{
        AcceptedBatch, BatchVerdict, Deduplication, Kind, OBSERVATION_BYTES, OWN_SENDER_PREFIX,
        SenderLimit, UnixMillis, is_own_sender,
    },
    telemetry::Protocol,
};
use answering::answer;

/// A request with a body of batches.
#[derive(Debug, Message)]
#[rtype(result = "Result<IngestAnswer, CollectFault>")]
pub struct CollectBatches {
    /// The bytes, decompressed.
    pub body: Bytes,
    /// The encoding in which the sender wrote the body.
    pub encoding: BatchEncoding,
    /// True or false for a body that another node decoded and checked: whether its samples replace
    /// the stored ones.
    pub decoded: Option<bool>,
    /// True for samples of the daemon itself.
    pub is_own: bool,
    /// The limit of the senders' names; `None`: any name.
    pub senders: Option<SenderLimit>,
    /// The memory of the body; it grows while the body is decoded.
    pub memory: ReservedMemory,
}

/// The state of senders that number their batches, in one collector.
#[derive(Debug)]
pub(super) struct BatchCollector {
    sessions: RefCell<Sessions>,
}

/// The memory of a request, with that of its observations of distributions.
struct ObservationMemory {
    memory: ReservedMemory,
    /// The number of observations that have memory.
    observations: usize,
}

impl ObservationMemory {
    /// Reserves the memory of this many observations, unless an earlier call has reserved it.
    fn hold(&mut self, observations: usize) -> Result<(), NoMemory> {
        if let more @ 1.. = observations.saturating_sub(self.observations) {
            self.memory.grow(more * OBSERVATION_BYTES)?;
            self.observations = observations;
        }
        Ok(())
    }
}

impl BatchCollector {
    pub(super) fn new(parts: &CollectorParts) -> Self {
        let (sender_series_max, refs_max) = session_limits(parts);
        let sessions = Sessions::new(parts.series_limits, sender_series_max, refs_max);
        Self { sessions: RefCell::new(sessions) }
    }

    pub(super) async fn collect(
        &self,
        request: CollectBatches,
        parts: &CollectorParts,
    ) -> Result<IngestAnswer, CollectFault> {
        let CollectBatches { body, encoding, decoded, is_own, senders, mut memory } = request;
        let now = parts.clock.now();
        let decoded = match decoded {
            None => {
                memory.grow(encoding.memory(&body))?;
                encoding.bson(body, now)?
            }
            Some(replace) => {
                memory.grow(BatchEncoding::Bson.memory(&body))?;
                let views = views_of(&body, BatchEncoding::Bson, &mut memory)?;
                note_sender_times(&views, now, parts);
                let body = DecodedBody { bson: body.clone(), invalid: Vec::new(), replace };
                let origin = (encoding, None);
                return self.collect_decoded(&views, body, origin, memory, parts).await;
            }
        };
        let body = decoded.bson.clone();
        let views = views_of(&body, encoding, &mut memory)?;
        if !is_own {
            check_senders(&views, senders.as_ref())?;
        }
        note_sender_times(&views, now, parts);
        match &parts.others {
            None => {
                let origin = (encoding, senders.as_ref());
                self.collect_decoded(&views, decoded, origin, memory, parts).await
            }
            Some(others) => {
                if decoded.replace {
                    return Err(CollectFault::Forbidden(
                        "replace: readings cannot be corrected in a cluster with several shards yet"
                            .to_owned(),
                    ));
                }
                let samples = views.iter().map(|view| view.len() as u64).sum();
                parts.take_quota(samples)?;
                let here = |body: DecodedBody| async move {
                    let bson = body.bson.clone();
                    let views = protocol::batches(&bson)?;
                    self.collect_decoded(&views, body, (encoding, None), memory, parts).await
                };
                spreading::spread_batches(&views, decoded, encoding, (&**others, parts), here).await
            }
        }
    }

    /// Collects the batches of this shard.
    async fn collect_decoded(
        &self,
        views: &[BatchView<'_>],
        body: DecodedBody,
        (encoding, senders): (BatchEncoding, Option<&SenderLimit>),
        memory: ReservedMemory,
        parts: &CollectorParts,
    ) -> Result<IngestAnswer, CollectFault> {
        let DecodedBody { invalid, replace, .. } = body;
        let protocol_label = match encoding {
            BatchEncoding::Bson | BatchEncoding::Packed => Protocol::Native,
            BatchEncoding::Json => Protocol::Json,
            BatchEncoding::Updates => Protocol::Updates,
        };
        let (sender_series_max, refs_max) = session_limits(parts);
        {
            let mut sessions = self.sessions.borrow_mut();
            sessions.set_limits(sender_series_max, refs_max);
            sessions.set_distributions(&parts.settings.get().distributions);
        }
        let defined: usize = views.iter().map(|view| view.series.len()).sum();
        let limit = parts.request_series_max;
        if defined > limit {
            return Err(CollectFault::TooMany(format!(
                "{defined} series are defined in one request, more than {limit}"
            )));
        }
        if replace {
            if senders.is_some() {
                return Err(refused_replace());
            }
            check_replaced(views)?;
        }
        if parts.others.is_none() {
            parts.take_quota(views.iter().map(|view| view.len() as u64).sum())?;
        }
        let mut memory = ObservationMemory { memory, observations: 0 };
        let resolved = self.resolve(views, encoding, &mut memory, parts).await;
        let (mut batches, mut response_parts) = resolved?;
        for (batch, view) in batches.iter_mut().zip(views) {
            batch.replica = parts.replica(view.agent);
        }
        if encoding == BatchEncoding::Updates {
            count_readings_once(views, &mut batches, parts);
        }
        for (part, invalid) in response_parts.iter_mut().zip(invalid) {
            part.samples += invalid.samples;
            part.refused.add_invalid(invalid);
        }
        if replace {
            let refused = response_parts.iter_mut().map(|part| &mut part.refused);
            let (verdicts, replaced) = replacing::replace(&batches, refused, parts).await?;
            let answer = answer(protocol_label, verdicts, views, response_parts, parts)?;
            return Ok(IngestAnswer { replaced, ..answer });
        }
        let verdicts = parts.writer.append(batches).await?;
        let emptied = self.emptied((views, &verdicts), encoding, &mut memory, parts);
        let answer = answer(protocol_label, verdicts, views, response_parts, parts)?;
        Ok(IngestAnswer { emptied, ..answer })
    }

    /// Counts, by sender, the samples of duplicate batches whose series were deleted. Numbers
    /// outlive series: without the count, a client would believe that these samples are stored.
    fn emptied(
        &self,
        (views, verdicts): (&[BatchView<'_>], &[BatchVerdict]),
        encoding: BatchEncoding,
        memory: &mut ObservationMemory,
        parts: &CollectorParts,
    ) -> BTreeMap<String, u64> {
        let mut emptied = BTreeMap::new();
        let is_known =
            |verdict| matches!(verdict, BatchVerdict::Duplicate | BatchVerdict::StaleNumber);
        if !verdicts.iter().copied().any(is_known) {
            return emptied;
        }
        // Series that change at this moment are reported when the batches are sent again.
        let judged = self.judge(views, encoding, &DecidedSeries::default(), memory, parts);
        let Ok(((batches, _), _)) = judged else { return emptied };
        let all = batches.iter().zip(views).zip(verdicts);
        for ((batch, view), _) in all.filter(|(_, verdict)| is_known(**verdict)) {
            let count = parts.store.count_of_empty_series(&batch.series);
            if count > 0 {
                *emptied.entry(view.agent.to_owned()).or_default() += count;
            }
        }
        emptied
    }
}

/// Deduplicates readings by time: a slot that is set again is the same reading, but an increment
/// counts again.
fn count_readings_once(
    views: &[BatchView<'_>],
    batches: &mut [AcceptedBatch],
    parts: &CollectorParts,
) {
    let window_ms = parts.settings.get().window_ms();
    for (view, batch) in views.iter().zip(batches) {
        let are_readings = view.series.iter().all(|series| series.kind == Kind::Gauge);
        if batch.deduplication == Deduplication::Never && are_readings {
            batch.deduplication = Deduplication::ByTime { window_ms };
        }
    }
}

/// Returns the batches of a body, and takes memory for their histograms.
fn views_of<'a>(
    body: &'a Bytes,
    encoding: BatchEncoding,
    memory: &mut ReservedMemory,
) -> Result<Vec<BatchView<'a>>, CollectFault> {
    let views = protocol::batches(body)?;
    let histogram_bytes: usize = views.iter().map(|view| view.histograms.len()).sum();
    memory.grow(encoding.histogram_memory(histogram_bytes))?;
    Ok(views)
}

fn refused_replace() -> CollectFault {
    CollectFault::Forbidden(
        "replace: a key that is limited to senders cannot correct readings, because their series \
         may be of other senders"
            .to_owned(),
    )
}

/// Returns the maximum numbers of series of a sender, and of refs of all sessions.
fn session_limits(parts: &CollectorParts) -> (usize, usize) {
    let settings = parts.settings.get();
    (settings.sender_series_max, settings.series_max.saturating_mul(2))
}

/// Refuses names that are reserved for the daemon, and names beyond the limit of the caller's key.
fn check_senders(views: &[BatchView<'_>], limit: Option<&SenderLimit>) -> Result<(), CollectFault> {
    if let Some(limit) = limit
        && let Some(index) = views.iter().position(|view| !limit.allows(view.agent))
    {
        return Err(CollectFault::Forbidden(format!(
            "batch {index}: agent: the key is limited to senders whose name {limit}"
        )));
    }
    // A stored name with a control character would name another project.
    if let Some(index) = views.iter().position(|view| view.agent.contains(char::is_control)) {
        return Err(CollectFault::Malformed(format!(
            "batch {index}: agent: the name has a control character; use another name"
        )));
    }
    match views.iter().position(|view| is_own_sender(view.agent)) {
        None => Ok(()),
        Some(index) => Err(CollectFault::Malformed(format!(
            "batch {index}: agent: names that begin with {OWN_SENDER_PREFIX:?} are reserved for the \
             daemon; use another name"
        ))),
    }
}

/// Passes the times of the senders' clocks to a doubted clock. Samples that the daemon dated are
/// ignored: they have the time `now`, at which the body was decoded.
fn note_sender_times(views: &[BatchView<'_>], now: UnixMillis, parts: &CollectorParts) {
    if !parts.clock.is_doubted() {
        return;
    }
    for view in views.iter().filter(|view| !view.agent.is_empty()) {
        let latest = || view.times().filter(|time| *time != now.0).max();
        if let Some(time) = Some(view.sent).filter(|sent| *sent != 0).or_else(latest) {
            parts.clock.note_sender_time(view.agent, UnixMillis(time));
        }
    }
}
