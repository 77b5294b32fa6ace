//! Pages of an export of all shards: each shard sends the next of its series with their slots, and
//! equal series are merged.
//!
//! A page ends with the first series after which a shard has more than it sent, so that the series
//! of all shards are in order. The next page begins after this series in all shards. Must never
//! know: where the shards are.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    ExportPage, ExportRequest, ExportSeries, PAGE_SLOTS,
    part::{PartHead, PartRequest, SeriesPart},
    wire::{SeriesBytes, WholePart, put_end, put_series},
};
use crate::{
    model::{Granularity, HistogramSlot, SeriesInfo, SeriesKey, UnixMillis},
    query::{
        Budget, EXPORT, QueryError, QueryLimits, Resolution, Selector, SeriesToken,
        cells::coverage::coverage,
        messages::{damaged_answer, damaged_question, read_answer, read_question, written},
        series::selector::{After, unknown_token},
    },
    store::{Slot, Store},
};

/// The target number of slots that a shard sends for a page.
const PART_SLOTS: i64 = PAGE_SLOTS / 4;

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
    let (resolution, start, end, after, upto, shells) = match step {
        ExportStep::Find(token) => {
            let key = selector.key_of(store, budget, &token)?;
            return written(&key.map(|key| key.as_bytes().to_vec()));
        }
        ExportStep::Read { resolution, start, end, after, upto, shells } => {
            (resolution, start, end, after, upto, shells)
        }
    };
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
        slots_max: PART_SLOTS,
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
    let read = |resolution: String| {
        let (start, end) = (request.range.start.0, request.range.end.0);
        let (upto, shells, after) = (request.upto.clone(), request.shells, after.clone());
        ask(ExportStep::Read { resolution, start, end, after, upto, shells })
    };
    let mut answers = read(request.resolution.to_string())?;
    let reserved = budget.reserved();
    let mut parts = decoded(&answers, budget)?;
    let widest = parts.iter().map(|part| &part.head).max_by_key(|head| head.width_ms);
    let PartHead { width_ms, resolution, .. } = widest.ok_or_else(changed)?.clone();
    if parts.iter().any(|part| part.head.width_ms != width_ms) {
        drop(parts);
        budget.shrink_to(reserved);
        answers = read(resolution.clone())?;
        parts = decoded(&answers, budget)?;
    }
    let coverage = coverage(store, &[], &request.range, now);
    let (_, granularity) = coverage.granularities().named(&resolution).ok_or_else(changed)?;
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

/// Returns the error of a page whose series or resolutions changed while it was read.
fn changed() -> QueryError {
    QueryError::Busy("the series of a shard have changed; retry".to_owned())
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
            let last = sent.last().map(|last| last.info.key.clone()).ok_or_else(changed)?;
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
