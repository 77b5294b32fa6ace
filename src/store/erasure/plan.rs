//! The plan of an erasure: the slots that its range cuts, and the cells that remain there.
//!
//! A slot that is erased in part keeps the samples outside of the range. When all samples of its
//! cell are on one side of an edge, the first and last time show it. Otherwise the cells of the
//! next finer level are merged again, if these have as many samples as the cell.
//!
//! Must never know: files; it reads views.

use std::ops::Range;

use super::apply::whole_slots;
use crate::{
    model::{Cell, Granularity, GranularityIndex, SeriesId, UnixMillis},
    store::{
        classes::Class,
        dictionary::Matcher,
        documents::{Columns, Documents, Slot},
        error::StoreError,
        handle::Store,
        journal::erasure_row::CutSlot,
        view::level::LevelView,
    },
};

/// The maximum number of series of one erasure, with their parts.
pub const ERASED_SERIES_MAX: usize = 10_000;
/// The maximum number of documents that one erasure may change.
pub const ERASED_DOCUMENTS_MAX: u64 = 100_000;
/// The maximum number of slots that a refusal names.
const NAMED_MAX: usize = 4;

/// The samples to erase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErasureRequest {
    /// The conditions that select the series.
    pub matchers: Vec<Matcher>,
    /// The times of the samples.
    pub range: Range<UnixMillis>,
}

/// The effect of an erasure at one level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErasedLevel {
    /// The name of the level.
    pub level: String,
    /// The cells that are emptied.
    pub cells: u64,
    /// The samples in these cells.
    pub samples: u64,
    /// The cells that keep some samples.
    pub recomputed: u64,
}

/// A slot that cannot be erased in part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedSlot {
    /// The name of the level.
    pub level: String,
    /// The times of the slot.
    pub times: Range<UnixMillis>,
    /// The next finer level, which lacks samples of the slot; `None` for the finest level.
    pub finer: Option<String>,
    /// The number of series with such a cell.
    pub series: usize,
}

/// The reason why nothing was erased.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ErasureRefusal {
    /// No metric and no tag was given.
    #[error("a metric or a tag is required, so that not all series lose samples by mistake")]
    NoCondition,
    /// The range is empty.
    #[error("start is not before end; nothing was erased")]
    EmptyRange,
    /// The selector matches too many series.
    #[error(
        "{0} series match, and one request may erase samples of {ERASED_SERIES_MAX}: select fewer, \
         and repeat the request for the others; nothing was erased"
    )]
    TooManySeries(usize),
    /// The range has too many documents.
    #[error(
        "the samples are in up to {0} documents, and one request may change {ERASED_DOCUMENTS_MAX}: \
         select fewer series or a shorter range, and repeat the request for the rest; nothing was \
         erased"
    )]
    TooManyDocuments(u64),
    /// Samples inside and outside of the range are in one cell.
    #[error("{}; nothing was erased", describe(.0))]
    Cut(Vec<RefusedSlot>),
    /// A checkpoint or a snapshot is under way.
    #[error("a checkpoint or a snapshot is under way; retry when it is complete")]
    Running,
}

/// Describes the first slots.
fn describe(slots: &[RefusedSlot]) -> String {
    let one = |slot: &RefusedSlot| {
        let RefusedSlot { level, times, finer, series } = slot;
        let (start, end) = (times.start, times.end);
        let reason = match finer {
            None => "which is the finest level and keeps no single samples".to_owned(),
            Some(finer) => format!("and {finer} does not have all of them"),
        };
        format!(
            "the {level} slot from {start} to {end} has samples inside and outside of the range, \
             {reason} (series: {series}): choose times at whole slots of {level}"
        )
    };
    let named: Vec<_> = slots.iter().take(NAMED_MAX).map(one).collect();
    let more = slots.len().saturating_sub(NAMED_MAX);
    let rest = if more > 0 { format!("; and {more} more slots") } else { String::new() };
    format!("{}{rest}", named.join("; "))
}

/// The plan of an erasure.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ErasurePlan {
    /// The number of series that match.
    pub(crate) matched: usize,
    /// The series with their parts, ascending.
    pub(crate) series: Vec<SeriesId>,
    pub(crate) cut: Vec<CutSlot>,
}

impl Store {
    /// Plans an erasure. Nothing may be accepted, and no checkpoint may run meanwhile.
    pub(crate) fn plan_erasure(
        &self,
        request: &ErasureRequest,
    ) -> Result<Result<ErasurePlan, ErasureRefusal>, StoreError> {
        let mut plan = match self.select_erased(request) {
            Ok(plan) => plan,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let mut refused = Vec::new();
        let living = self.inner.classes.levels().len();
        let classes = self.inner.classes.all().iter().map(Class::range);
        let retired = (living..self.all_granularities().len()).map(|index| index..index + 1);
        for levels in classes.chain(retired) {
            let mut finer: Option<(GranularityIndex, Vec<CutSlot>)> = None;
            for index in levels.map(GranularityIndex) {
                let step = CutLevel {
                    store: self,
                    index,
                    level: self.granularity(index),
                    range: &request.range,
                    series: &plan.series,
                    finer: finer.as_ref().map(|(index, cut)| (*index, &**cut)),
                };
                let cut = step.cut_slots(&mut refused)?;
                plan.cut.extend(cut.iter().cloned());
                finer = Some((index, cut));
            }
        }
        Ok(if refused.is_empty() { Ok(plan) } else { Err(ErasureRefusal::Cut(refused)) })
    }

    /// Selects the series, and checks the limits.
    fn select_erased(&self, request: &ErasureRequest) -> Result<ErasurePlan, ErasureRefusal> {
        let ErasureRequest { matchers, range } = request;
        if matchers.is_empty() {
            return Err(ErasureRefusal::NoCondition);
        }
        if range.is_empty() {
            return Err(ErasureRefusal::EmptyRange);
        }
        let dictionary = self.dictionary();
        let mut series = dictionary.select(matchers);
        let matched = series.len();
        if matched <= ERASED_SERIES_MAX {
            let parts: Vec<_> = series.iter().flat_map(|id| dictionary.parts(*id)).collect();
            series.extend(parts.into_iter().copied().collect::<Vec<_>>());
        }
        drop(dictionary);
        series.sort_unstable();
        series.dedup();
        if series.len() > ERASED_SERIES_MAX {
            return Err(ErasureRefusal::TooManySeries(series.len()));
        }
        let documents = self.spans_within(range).saturating_mul(series.len() as u64);
        if documents > ERASED_DOCUMENTS_MAX {
            return Err(ErasureRefusal::TooManyDocuments(documents));
        }
        Ok(ErasurePlan { matched, series, cut: Vec::new() })
    }

    /// Returns the number of document spans of existing partitions, over all levels, in a range.
    fn spans_within(&self, range: &Range<UnixMillis>) -> u64 {
        let mut spans = 0;
        for index in (0..self.all_granularities().len()).map(GranularityIndex) {
            for place in self.inner.documents.places(index, range.start.0..range.end.0) {
                let mut start = place.document_start(range.start.max(place.id.start));
                while start < range.end && start < place.end && spans <= ERASED_DOCUMENTS_MAX {
                    spans += 1;
                    start = place.next_document(start);
                }
            }
        }
        spans
    }

    /// Counts the cells and samples of a plan at each level that has some.
    pub(crate) fn count_erased(
        &self,
        plan: &ErasurePlan,
        range: &Range<UnixMillis>,
    ) -> Result<Vec<ErasedLevel>, StoreError> {
        let mut levels = Vec::new();
        for (index, level) in self.all_granularities().iter().enumerate() {
            let whole = whole_slots(level, range);
            let recomputed = plan.cut.iter().filter(|slot| slot.level == level.name);
            let recomputed = recomputed.map(|slot| slot.cells.len() as u64).sum();
            let mut counted =
                ErasedLevel { level: level.name.clone(), cells: 0, samples: 0, recomputed };
            if !whole.is_empty() {
                let times = UnixMillis(whole.start)..UnixMillis(whole.end);
                let view = self.view_level(GranularityIndex(index), times, plan.series.clone())?;
                let mut slots = Vec::new();
                for id in &plan.series {
                    view.slots_into(*id, Columns::ALL, &mut slots)?;
                    counted.cells += slots.len() as u64;
                    counted.samples += slots.iter().map(|slot| u64::from(slot.cell.n)).sum::<u64>();
                }
            }
            if counted.cells > 0 || counted.recomputed > 0 {
                levels.push(counted);
            }
        }
        Ok(levels)
    }
}

/// The slots of one level that a range cuts.
struct CutLevel<'a> {
    store: &'a Store,
    index: GranularityIndex,
    level: &'a Granularity,
    range: &'a Range<UnixMillis>,
    series: &'a [SeriesId],
    /// The next finer level, with its changed slots.
    finer: Option<(GranularityIndex, &'a [CutSlot])>,
}

/// The relation of a cell to the range.
enum Relation {
    Outside,
    Inside,
    Both,
}

impl CutLevel<'_> {
    fn cut_slots(&self, refused: &mut Vec<RefusedSlot>) -> Result<Vec<CutSlot>, StoreError> {
        let edges = [self.range.start, self.range.end];
        let mut starts: Vec<_> =
            edges.into_iter().map(|edge| (self.level.slot_start(edge), edge)).collect();
        starts.retain(|(start, edge)| start != edge);
        starts.dedup_by_key(|(start, _)| *start);
        let mut cut = Vec::new();
        for (start, _) in starts {
            let slot = self.cut_slot(start, refused)?;
            if !slot.cells.is_empty() {
                cut.push(slot);
            }
        }
        Ok(cut)
    }

    fn cut_slot(
        &self,
        start: UnixMillis,
        refused: &mut Vec<RefusedSlot>,
    ) -> Result<CutSlot, StoreError> {
        let times = start..start.plus(self.level.width_ms);
        let view = self.store.view_level(self.index, times.clone(), self.series.to_vec())?;
        let (mut cells, mut mixed, mut slots) = (Vec::new(), Vec::new(), Vec::new());
        for id in self.series {
            view.slots_into(*id, Columns::ALL, &mut slots)?;
            let Some(Slot { cell, .. }) = slots.first() else { continue };
            match self.relation(start, cell) {
                Relation::Outside => {}
                Relation::Inside => cells.push((*id, Cell::EMPTY)),
                Relation::Both => mixed.push((*id, *cell)),
            }
        }
        let mut missing = mixed.len();
        if let (Some((finer, changed)), false) = (self.finer, mixed.is_empty()) {
            let ids = mixed.iter().map(|(id, _)| *id).collect();
            let view = self.store.view_level(finer, times.clone(), ids)?;
            missing = 0;
            for (id, cell) in &mixed {
                match self.remaining(&view, (start, *id), cell.n, (finer, changed))? {
                    Ok(Some(rest)) => cells.push((*id, rest)),
                    Ok(None) => {}
                    Err(()) => missing += 1,
                }
            }
        }
        if missing > 0 {
            let finer = self.finer.map(|(index, _)| self.store.granularity(index).name.clone());
            let level = self.level.name.clone();
            refused.push(RefusedSlot { level, times, finer, series: missing });
        }
        cells.sort_unstable_by_key(|(id, _)| *id);
        Ok(CutSlot { level: self.level.name.clone(), start, cells })
    }

    fn relation(&self, start: UnixMillis, cell: &Cell) -> Relation {
        let first = start.plus(i64::from(cell.first_at));
        let last = start.plus(i64::from(cell.last_at));
        if cell.n == 0 || last < self.range.start || first >= self.range.end {
            Relation::Outside
        } else if first >= self.range.start && last < self.range.end {
            Relation::Inside
        } else {
            Relation::Both
        }
    }

    /// Merges the finer cells outside of the range; `None` when all of them are, and an error when
    /// they do not have all `n` samples.
    fn remaining(
        &self,
        finer: &LevelView,
        (start, series): (UnixMillis, SeriesId),
        n: u32,
        (index, changed): (GranularityIndex, &[CutSlot]),
    ) -> Result<Result<Option<Cell>, ()>, StoreError> {
        let width_ms = self.store.granularity(index).width_ms;
        let mut slots = Vec::new();
        finer.slots_into(series, Columns::ALL, &mut slots)?;
        let (mut rest, mut found, mut is_changed) = (Cell::EMPTY, 0_u64, false);
        for Slot { start: at, cell } in &slots {
            found += u64::from(cell.n);
            let mut kept = *cell;
            if self.range.start <= *at && at.plus(width_ms) <= self.range.end {
                (kept, is_changed) = (Cell::EMPTY, true);
            }
            let of_slot = changed.iter().find(|cut| cut.start == *at);
            let cells = of_slot.map_or(&[][..], |cut| &cut.cells);
            if let Ok(place) = cells.binary_search_by_key(&series, |(id, _)| *id) {
                (kept, is_changed) = (cells[place].1, true);
            }
            rest.merge(&kept.shifted((at.0 - start.0) as u32));
        }
        if found != u64::from(n) {
            return Ok(Err(()));
        }
        Ok(Ok(is_changed.then_some(rest)))
    }
}
