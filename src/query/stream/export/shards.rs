//! Pages of an export of all shards: each shard sends the next of its series with their slots, and
//! equal series are merged.
//!
//! A page ends with the first series after which a shard has more than it sent, so that the series
//! of all shards are in order. The next page begins after this series in all shards. Must never
//! know: where the shards are.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    ExportPage, ExportRequest, ExportSeries,
    part::{PartHead, PartMax, PartRequest, SeriesPart},
    wire::{SeriesBytes, WholePart, put_end, put_series},
};
use crate::{
    model::{Granularity, HistogramSlot, SeriesInfo, SeriesKey, UnixMillis},
    query::{
        Budget, EXPORT, QueryError, QueryLimits, Resolution, Selector, SeriesToken,
        cells::coverage::coverage,
        messages::{
            changed_series, damaged_answer, damaged_question, read_answer, read_question, written,
        },
        series::selector::{After, unknown_token},
        time::resolution::granularity_of_shard,
    },
    store::{Slot, Store},
};

/// A question for a shard.
#[derive(Debug, Serialize, Deserialize)]
struct ExportQuestion {
    selector: Selector,
    step: ExportStep,
}

#[derive(Debug, Serialize, Deserialize)]
enum ExportStep {
    /// The shard looks for the key of a series.
    Find(SeriesToken),
    /// The shard sends its series.
    Read {
        resolution: String,
        start: i64,
        end: i64,
        /// The key of the last series of the previous page.
        after: Option<Vec<u8>>,
        /// The newest series of each shard.
        upto: Option<SeriesToken>,
        shells: bool,
        /// The shard's part of a page.
        max: PartMax,
    },
}

/// Answers another node's question for one shard, whose number selects the shard's tokens.
///
/// # Errors
/// See [`super::export`].
pub fn export_of_question(
    (store, shard): (&Store, u16),
    budget: &Budget,
    question: &[u8],
    limits: &QueryLimits,
    now: UnixMillis,
) -> Result<Vec<u8>, QueryError> {
    let ExportQuestion { selector, step } = read_question(question)?;
    let (resolution, start, end, after, upto, shells, max) = match step {
        ExportStep::Find(token) => {
            let key = selector.key_of(store, budget, &token)?;
            return written(&key.map(|key| key.as_bytes().to_vec()));
        }
        ExportStep::Read { resolution, start, end, after, upto, shells, max } => {
            (resolution, start, end, after, upto, shells, max)
        }
    };
    if start >= end {
        return Err(damaged_question());
    }
    let Ok(resolution) = resolution.parse::<Resolution>();
    let after = after.map(|key| SeriesKey::from_bytes(&key).ok_or_else(damaged_question));
    let after = after.transpose()?;
    let of_shard =
        |upto: SeriesToken| upto.of_shard(usize::from(shard)).ok_or_else(|| unknown_token("upto"));
    let upto = upto.map(of_shard).transpose()?;
    let request = PartRequest {
        selector: &selector,
        resolution: &resolution,
        range: UnixMillis(start)..UnixMillis(end),
        after: after.as_ref().map(After::Key),
        upto: upto.as_ref(),
        shells,
        max: max.min(PartMax::PAGE),
    };
    let (mut out, mut reserved) = (Vec::new(), 0);
    let (head, _) = request.read((store, budget), limits, now, &mut |_, part| {
        put_series(&part, &mut out);
        let grown = out.capacity() - reserved;
        reserved = out.capacity();
        Ok(budget.reserve(grown)?)
    })?;
    put_end(&written(&head)?, &mut out);
    Ok(out)
}

/// Reads a page of all shards.
pub(super) fn export(
    store: &Store,
    budget: &Budget,
    request: &ExportRequest,
    limits: &QueryLimits,
    now: UnixMillis,
) -> Result<ExportPage, QueryError> {
    let ask = |step: ExportStep| {
        let question = written(&ExportQuestion { selector: request.selector.clone(), step })?;
        let own = || export_of_question((store, 0), budget, &question, limits, now);
        budget.ask_shards(EXPORT, &question, own)
    };
    let after = match &request.after {
        None => None,
        Some(token) => {
            let answers = ask(ExportStep::Find(token.clone()))?;
            let keys = answers.iter().map(|answer| read_answer(answer, budget));
            let keys: Vec<Option<Vec<u8>>> = keys.collect::<Result<_, QueryError>>()?;
            Some(keys.into_iter().flatten().next().ok_or_else(|| unknown_token("after"))?)
        }
    };
    let shards = 1 + budget.others().map_or(0, |(others, _)| others.count());
    let max = PartMax::of_shards(shards, limits);
    let read = |resolution: String| {
        let (start, end) = (request.range.start.0, request.range.end.0);
        let (upto, shells, after) = (request.upto.clone(), request.shells, after.clone());
        ask(ExportStep::Read { resolution, start, end, after, upto, shells, max })
    };
    let mut answers = read(request.resolution.to_string())?;
    let reserved = budget.reserved();
    let mut parts = decoded(&answers, budget)?;
    let heads = parts.iter().map(|part| &part.head).zip(0..);
    let (widest, shard) = heads.max_by_key(|(head, _)| head.width_ms).ok_or_else(changed_series)?;
    let PartHead { width_ms, resolution, .. } = widest.clone();
    if parts.iter().any(|part| part.head.width_ms != width_ms) {
        drop(parts);
        budget.shrink_to(reserved);
        answers = read(resolution.clone())?;
        parts = decoded(&answers, budget)?;
    }
    let coverage = coverage(store, &[], &request.range, now);
    let (_, granularity) = granularity_of_shard(coverage.granularities(), (&resolution, shard))?;
    merged(parts, budget, (request, granularity))
}

fn decoded<'a>(answers: &'a [Vec<u8>], budget: &Budget) -> Result<Vec<WholePart<'a>>, QueryError> {
    let decoded = |answer: &'a Vec<u8>| {
        budget.check()?;
        let part = WholePart::decode(answer, budget)?;
        part.ok_or_else(damaged_answer)
    };
    answers.iter().map(decoded).collect()
}

/// Merges the parts of a page.
fn merged(
    parts: Vec<WholePart<'_>>,
    budget: &Budget,
    (request, granularity): (&ExportRequest, &Granularity),
) -> Result<ExportPage, QueryError> {
    let mut whole = PartHead::default();
    let (mut upto, mut cut) = (Vec::new(), None::<SeriesKey>);
    let mut series = BTreeMap::<(SeriesKey, u8), Vec<SeriesBytes<'_>>>::new();
    for WholePart { head, series: sent } in parts {
        if head.before.saturating_add(sent.len()) < head.total {
            let last = sent.last().map(|last| last.info.key.clone()).ok_or_else(changed_series)?;
            cut = Some(cut.map_or(last.clone(), |cut| cut.min(last)));
        }
        whole.total += head.total;
        whole.before += head.before;
        whole.tags.extend(head.tags);
        whole.has_histograms |= head.has_histograms;
        upto.push(head.upto.unwrap_or_else(SeriesToken::nothing));
        for one in sent {
            series.entry((one.info.key.clone(), one.info.kind.code())).or_default().push(one);
        }
    }
    let is_on_page = |key: &SeriesKey| cut.as_ref().is_none_or(|cut| key <= cut);
    let (mut merged, mut done) = (Vec::new(), whole.before);
    let mut slots = Vec::<Slot>::new();
    for ((key, _), parts) in series.into_iter().filter(|((key, _), _)| is_on_page(key)) {
        budget.check()?;
        done += parts.len();
        let Some(SeriesInfo { kind, unit, sender, .. }) =
            parts.first().map(|part| part.info.clone())
        else {
            continue;
        };
        let info = SeriesInfo { key, kind, unit, sender };
        let (mut shells, mut histograms) = (Vec::new(), Vec::new());
        slots.clear();
        let count = parts.iter().map(SeriesBytes::slot_count).sum::<usize>();
        if count > slots.capacity() {
            budget.reserve((count - slots.capacity()) * size_of::<Slot>())?;
            slots.reserve_exact(count);
        }
        for part in &parts {
            part.read(&mut slots, &mut shells).ok_or_else(damaged_answer)?;
            histograms.extend(part.histograms(budget)?.ok_or_else(damaged_answer)?);
        }
        if parts.len() > 1 {
            join_slots(&mut slots, |slot| slot.start, |kept, next| kept.cell.merge(&next.cell));
            let merge =
                |kept: &mut HistogramSlot, next: &HistogramSlot| kept.cell.merge(&next.cell);
            join_slots(&mut histograms, |slot| slot.start, merge);
        }
        let part = SeriesPart { info: &info, slots: &slots, shells, histograms };
        merged.push(ExportSeries::new(granularity, part, budget)?);
    }
    let after = cut.as_ref().map(SeriesToken::new);
    let upto = Some(SeriesToken::of_shards(upto));
    Ok(ExportPage::new(request, granularity, whole, (done, after, upto), merged))
}

/// Orders slots, and merges those of the same time in the order of shards.
fn join_slots<T>(slots: &mut Vec<T>, start: impl Fn(&T) -> UnixMillis, merge: impl Fn(&mut T, &T)) {
    slots.sort_by_key(&start);
    slots.dedup_by(|next, kept| {
        let is_same = start(next) == start(kept);
        if is_same {
            merge(kept, next);
        }
        is_same
    });
}
