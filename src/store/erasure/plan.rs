//! The plan of an erasure: its series, within the limits, and the slots that its range cuts.
//!
//! Must never know: files; it reads views.

use std::ops::Range;

use super::{
    apply::whole_slots,
    cut::{CutLevel, CutSlots, RefusedSlot},
};
use crate::{
    model::{GranularityIndex, Kind, SeriesId, UnixMillis},
    store::{
        dictionary::Matcher,
        documents::{Columns, Documents},
        error::StoreError,
        handle::Store,
        journal::erasure_row::CutSlot,
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
    /// The samples that are erased.
    pub samples: u64,
    /// The cells that keep some samples.
    pub recomputed: u64,
}

/// The reason why nothing was deleted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ErasureRefusal {
    /// No metric and no tag was given.
    #[error("a metric or a tag is required, so that not all series lose samples by mistake")]
    NoCondition,
    /// The range is empty.
    #[error("start is not before end; nothing was deleted")]
    EmptyRange,
    /// The selector matches too many series.
    #[error(
        "{0} series match, and one request may delete samples of {ERASED_SERIES_MAX}: select fewer, \
         and repeat the request for the others; nothing was deleted"
    )]
    TooManySeries(usize),
    /// Series of histograms are selected.
    #[error(
        "{0} of the series are histograms, whose samples of a time cannot be deleted: delete these \
         series, or select series of numbers; nothing was deleted"
    )]
    Histograms(usize),
    /// The range has too many documents.
    #[error(
        "the samples are in up to {0} documents, and one request may change {ERASED_DOCUMENTS_MAX}: \
         select fewer series or a shorter range, and repeat the request for the rest; nothing was \
         deleted"
    )]
    TooManyDocuments(u64),
    /// Samples inside and outside of the range are in one cell.
    #[error("{}; nothing was deleted", describe(.0))]
    Cut(Vec<RefusedSlot>),
    /// A checkpoint or a snapshot is under way.
    #[error("a checkpoint or a snapshot is under way; retry when it is complete")]
    Running,
}

/// Describes the first slots.
fn describe(slots: &[RefusedSlot]) -> String {
    let one = |slot: &RefusedSlot| {
        let RefusedSlot { level, times, is_finest, series } = slot;
        let (start, end) = (times.start, times.end);
        let reason = if *is_finest {
            "which is the finest level and does not keep single samples"
        } else {
            "and no finer level has all of them"
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
    /// The number of samples that are erased in cut slots, by level.
    erased_of_cut: Vec<u64>,
}

impl Store {
    /// Plans an erasure. While it plans, nothing may be accepted and no checkpoint may run.
    pub(crate) fn plan_erasure(
        &self,
        request: &ErasureRequest,
    ) -> Result<Result<ErasurePlan, ErasureRefusal>, StoreError> {
        let mut plan = match self.select_erased(request) {
            Ok(plan) => plan,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let (mut refused, mut done) = (Vec::new(), Vec::<CutSlots>::new());
        let mut levels: Vec<_> =
            (0..self.all_granularities().len()).map(GranularityIndex).collect();
        levels.sort_by_key(|index| self.granularity(*index).width_ms);
        for index in levels {
            let level = self.granularity(index);
            let finer =
                done.iter().rev().filter(|finer| self.may_have_samples_of(finer.index, index));
            let (range, series, finer) = (&request.range, &*plan.series, finer.collect());
            let step = CutLevel { store: self, index, level, range, series, finer };
            let cut = step.cut_slots(&mut refused)?;
            done.push(cut);
        }
        plan.erased_of_cut = vec![0; done.len()];
        for CutSlots { index, slots, erased } in done {
            plan.erased_of_cut[index.0] = erased;
            plan.cut.extend(slots);
        }
        Ok(if refused.is_empty() { Ok(plan) } else { Err(ErasureRefusal::Cut(refused)) })
    }

    /// Returns true when a level may have all samples of a coarser level: both belong to one class,
    /// or one of them is retired.
    fn may_have_samples_of(&self, finer: GranularityIndex, coarser: GranularityIndex) -> bool {
        let class = |index| self.inner.classes.of_level(index).map(|class| class.first);
        let [finer_ms, coarser_ms] = [finer, coarser].map(|index| self.granularity(index).width_ms);
        let is_divided = finer_ms < coarser_ms && coarser_ms % finer_ms == 0;
        let is_shared = match (class(finer), class(coarser)) {
            (Some(class), Some(other)) => class == other,
            (None, _) | (_, None) => true,
        };
        is_divided && is_shared
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
            let parts = series.iter().flat_map(|id| dictionary.parts(*id)).copied();
            series.extend(parts.collect::<Vec<_>>());
        }
        let is_histogram = |id: &&SeriesId| dictionary.kind(**id).is_some_and(Kind::is_histogram);
        let histograms = series.iter().filter(is_histogram).count();
        drop(dictionary);
        if histograms > 0 {
            return Err(ErasureRefusal::Histograms(histograms));
        }
        series.sort_unstable();
        series.dedup();
        if series.len() > ERASED_SERIES_MAX {
            return Err(ErasureRefusal::TooManySeries(series.len()));
        }
        let documents = self.documents_within(&series, range);
        if documents > ERASED_DOCUMENTS_MAX {
            return Err(ErasureRefusal::TooManyDocuments(documents));
        }
        Ok(ErasurePlan { matched, series, ..ErasurePlan::default() })
    }

    /// Returns the maximum number of documents of series in a range: documents in existing
    /// partitions of the levels of the series' classes and of retired levels.
    fn documents_within(&self, series: &[SeriesId], range: &Range<UnixMillis>) -> u64 {
        let of_classes = self.inner.catalog.read().series_classes().count_within(series, range);
        let mut documents = 0_u64;
        for index in (0..self.all_granularities().len()).map(GranularityIndex) {
            let classes = self.inner.classes.all();
            let class = classes.iter().position(|class| class.range().contains(&index.0));
            let series = class.map_or(series.len() as u64, |class| of_classes[class]);
            for grid in self.inner.documents.grids(index, range.start.0..range.end.0) {
                let mut start = grid.document_start(range.start.max(grid.id.start));
                while start < range.end && start < grid.end && documents <= ERASED_DOCUMENTS_MAX {
                    documents = documents.saturating_add(series);
                    start = grid.next_document(start);
                }
            }
        }
        documents
    }

    /// Counts the cells and samples of a plan at each level that has any.
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
            let samples = plan.erased_of_cut[index];
            let mut counted =
                ErasedLevel { level: level.name.clone(), cells: 0, samples, recomputed };
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
