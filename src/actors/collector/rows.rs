//! The collector's path for rows: decode, register new series, judge, write. Times identify
//! duplicates.
//!
//! Must never know: the encoding of protocols, HTTP. Rows name their series: a cache maps the hash
//! of the sender's notation to the id.

use std::cell::RefCell;

use actix::prelude::Message;
use bytes::Bytes;
use granary_protocol::IngestAnswer;

use super::{
    answers::{CollectFault, RowsAnswer},
    parts::{CollectorParts, CollectorSettings, protocol_label},
    spreading,
};
use crate::{
    ingest::{
        memory::ReservedMemory,
        protocol::{RowDecoder, RowProtocol},
        remote_write::EntryCounts,
        rows::{DecodedRows, LimitExceeded, Rows, SplitRows, observe},
        series_cache::SeriesCache,
    },
    model::{BatchVerdict, DefinitionVerdict, Distributions, Kind, SeriesKey},
    policy::{KindConflicts, RefusalReason},
};

/// A request with a body of rows.
#[derive(Debug, Message)]
#[rtype(result = "Result<RowsAnswer, CollectFault>")]
pub struct CollectRows {
    /// The bytes, decompressed.
    pub body: Bytes,
    /// The protocol of the body.
    pub protocol: RowProtocol,
    /// The sender that is charged for new series.
    pub sender: Box<str>,
    /// The memory of the body; it grows while the body is decoded.
    pub memory: Option<ReservedMemory>,
}

/// The state of senders of rows, in one collector.
#[derive(Debug)]
pub(super) struct RowCollector {
    cache: RefCell<SeriesCache>,
    decoder: RefCell<RowDecoder>,
    conflicts: RefCell<KindConflicts>,
    /// The distributions by which the cached series were looked up.
    distributions: RefCell<Distributions>,
}

impl RowCollector {
    pub(super) fn new(parts: &CollectorParts) -> Self {
        let templates = parts.settings.get().graphite_templates.clone();
        let families = parts.families.clone();
        let decoder = RefCell::new(RowDecoder::new(templates, families));
        let (cache, conflicts) = (RefCell::default(), RefCell::default());
        let distributions = RefCell::new(parts.settings.get().distributions.clone());
        Self { cache, decoder, conflicts, distributions }
    }

    pub(super) async fn collect(
        &self,
        request: CollectRows,
        parts: &CollectorParts,
    ) -> Result<RowsAnswer, CollectFault> {
        let Some(others) = parts.others.clone() else {
            return self.collect_here(request, parts).await;
        };
        let sender = request.sender.clone();
        let (split, contents, memory) = self.split(request, others.count(), parts)?;
        let here = |body: Vec<u8>| {
            let (body, protocol, sender) = (body.into(), RowProtocol::Part, sender.clone());
            self.collect_here(CollectRows { body, protocol, sender, memory }, parts)
        };
        let answer = spreading::spread_rows(split, &sender, (&*others, parts), here).await?;
        Ok(RowsAnswer { contents, ..answer })
    }

    /// Decodes a request, and splits its rows by shard. Returns the memory of the request, which
    /// the parts need now.
    fn split(
        &self,
        request: CollectRows,
        shards: u16,
        parts: &CollectorParts,
    ) -> Result<(SplitRows, EntryCounts, Option<ReservedMemory>), CollectFault> {
        let CollectRows { body, protocol, sender, mut memory } = request;
        if let Some(memory) = &mut memory {
            memory.grow(protocol.memory(&body))?;
        }
        let (mut cache, find) = (SeriesCache::default(), |_: &SeriesKey| None);
        let mut decoder = self.decoder.borrow_mut();
        decoder.set_templates(&parts.settings.get().graphite_templates);
        let mut rows = Rows::new(&mut cache, &find, &parts.series_limits, &sender)
            .with_limits(usize::MAX, memory.as_mut());
        let contents = decoder.decode(protocol, &body, parts.clock.now(), &mut rows);
        let contents = contents.map_err(CollectFault::Malformed)?;
        let decoded = rows.finish();
        if let Some(LimitExceeded::Memory(cause)) = decoded.exceeded {
            return Err(cause.into());
        }
        parts.take_quota(decoded.points() as u64)?;
        Ok((decoded.split(shards), contents, memory))
    }

    /// Collects the rows of this shard.
    async fn collect_here(
        &self,
        request: CollectRows,
        parts: &CollectorParts,
    ) -> Result<RowsAnswer, CollectFault> {
        let CollectRows { body, protocol, sender, mut memory } = request;
        if let Some(memory) = &mut memory {
            memory.grow(protocol.memory(&body))?;
        }
        let settings = parts.settings.get();
        let (decoded, contents) =
            self.decode((protocol, &body), &sender, &mut memory, (&settings, parts))?;
        drop(body);
        check_limits(&decoded, parts.request_series_max)?;
        if parts.others.is_none() {
            parts.take_quota(decoded.points() as u64)?;
        }
        let verdicts = self.register(&decoded, parts).await?;
        let points = decoded.points() as u64;
        let admission = parts.admission();
        let window_ms = settings.window_ms();
        let (mut batch, mut refused) = {
            let mut cache = self.cache.borrow_mut();
            let kind = |series| parts.store.dictionary().kind(series);
            let name = |series| Some(parts.store.dictionary().key(series)?.to_string());
            let class = |series, at| parts.store.class_at(series, at);
            decoded.admit(&verdicts, &mut cache, &admission, (kind, class, name), window_ms)
        };
        if !settings.distributions.is_empty() {
            let kind = |series| parts.store.dictionary().kind(series);
            let mut reserve = |bytes| memory.as_mut().map_or(Ok(()), |memory| memory.grow(bytes));
            observe(&mut batch, kind, &mut reserve)?;
        }
        let mut answer = IngestAnswer::default();
        batch.replica = parts.replica(&sender);
        if !batch.values.is_empty() {
            let samples = batch.values.len() as u64;
            let verdicts = parts.writer.append(vec![batch]).await?;
            if let Some(BatchVerdict::Accepted(tally)) = verdicts.first() {
                answer.duplicates = tally.duplicates + tally.of_replica;
                answer.accepted = samples - answer.duplicates - tally.out_of_order;
                let reason = RefusalReason::OutOfOrder;
                refused.add_many(reason, tally.out_of_order, || reason.remedy().to_owned());
                // The writer counts samples, not points. The samples of a point share one time, so
                // the refused fraction of points is the refused fraction of samples.
                let remaining_points = points.saturating_sub(refused.points);
                refused.points += (tally.out_of_order * remaining_points).div_ceil(samples);
            }
        }
        parts.tally.accept(&sender, answer.accepted, parts.clock.now());
        parts.count(protocol_label(protocol), &answer, &refused);
        let refused_points = refused.points;
        refused.report(&mut answer);
        Ok(RowsAnswer { answer, refused_points, contents })
    }

    /// Decodes a request with the cache of series, which is emptied when its content is outdated.
    fn decode(
        &self,
        (protocol, body): (RowProtocol, &Bytes),
        sender: &str,
        memory: &mut Option<ReservedMemory>,
        (settings, parts): (&CollectorSettings, &CollectorParts),
    ) -> Result<(DecodedRows, EntryCounts), CollectFault> {
        let mut cache = self.cache.borrow_mut();
        cache.trim(settings.series_max);
        cache.renew(parts.store.dictionary().generation());
        let mut decoder = self.decoder.borrow_mut();
        let has_conflicts = self.conflicts.borrow_mut().expire(parts.clock.now());
        let has_other_paths = decoder.set_templates(&settings.graphite_templates);
        let mut distributions = self.distributions.borrow_mut();
        let has_other_distributions = !distributions.is_same(&settings.distributions);
        distributions.clone_from(&settings.distributions);
        if decoder.take_changed_kinds()
            || has_conflicts
            || has_other_paths
            || has_other_distributions
        {
            cache.clear();
        }
        let find = |key: &SeriesKey| {
            let dictionary = parts.store.dictionary();
            let id = dictionary.find(key)?;
            Some((id, dictionary.kind(id)?))
        };
        let mut rows = Rows::new(&mut cache, &find, &parts.series_limits, sender)
            .with_limits(parts.request_series_max, memory.as_mut())
            .with_distributions(&settings.distributions);
        let contents = decoder.decode(protocol, body, parts.clock.now(), &mut rows);
        let contents = contents.map_err(CollectFault::Malformed)?;
        Ok((rows.finish(), contents))
    }

    /// Registers new series, and changes known series to their declared kinds. A series that cannot
    /// change keeps its kind.
    async fn register(
        &self,
        decoded: &DecodedRows,
        parts: &CollectorParts,
    ) -> Result<Vec<DefinitionVerdict>, CollectFault> {
        let definitions = decoded.definitions();
        if definitions.is_empty() {
            return Ok(Vec::new());
        }
        let mut verdicts = parts.writer.define(definitions).await?;
        let is_conflict =
            |verdict: &DefinitionVerdict| matches!(verdict, DefinitionVerdict::KindConflict(..));
        if !verdicts.iter().any(is_conflict) {
            return Ok(verdicts);
        }
        let all = decoded.definitions().into_iter().zip(&verdicts).enumerate();
        let conflicting = all.filter_map(|(index, (mut info, verdict))| {
            let DefinitionVerdict::KindConflict(id, known) = verdict else { return None };
            // The settings change a gauge, and no sender: the series stays its sender's.
            if *known == Kind::Gauge
                && decoded.is_observed(index)
                && let Some(series) = parts.store.dictionary().info(*id)
            {
                info.sender = series.sender;
            }
            Some(info)
        });
        let changed = parts.writer.change_kinds(conflicting.collect()).await?;
        for (verdict, id) in verdicts.iter_mut().filter(|verdict| is_conflict(verdict)).zip(changed)
        {
            if let Some(id) = id {
                *verdict = DefinitionVerdict::Known(id);
            } else {
                self.conflicts.borrow_mut().note(parts.clock.now());
            }
        }
        Ok(verdicts)
    }
}

/// Refuses a request that exceeded a limit while it was decoded.
fn check_limits(decoded: &DecodedRows, series_max: usize) -> Result<(), CollectFault> {
    match &decoded.exceeded {
        None => Ok(()),
        Some(LimitExceeded::Series) => {
            Err(CollectFault::TooMany(format!("more than {series_max} new series in one request")))
        }
        Some(LimitExceeded::Memory(cause)) => Err((*cause).into()),
    }
}
