//! Answers from the store: charts, documents, lists of series and senders, PromQL, pipelines, tails,
//! exports.
//!
//! Must never know: HTTP, how settings are read. A request comes as a checked struct with the `budget` that it
//! may use, and goes as one that serializes.

mod axis;
mod budget;
mod calendar;
mod cardinality;
mod cell_reader;
mod changes;
mod chart;
mod documents;
mod export;
mod expression;
mod facets;
mod find;
mod go_regex;
mod grouping;
mod held;
mod hosts;
mod levels;
mod listing;
mod matchers;
mod matching;
mod missing;
mod neighbours;
mod nested;
mod pipeline;
mod promql;
mod remembered;
mod resolution;
mod retry;
mod select;
mod senders;
mod spacing;
mod sparklines;
mod storage;
mod stored;
mod tail;
mod timestamp;

pub use crate::model::Display;
pub use budget::{Budget, OverBudget, QueryResources, Reservation, Scheduler, Waiter};
pub use calendar::{CalendarUnit, time_zone, zone_name};
pub use cardinality::{Cardinality, cardinality};
pub use changes::{ChangeAnswer, ChangedSeries, NewName, preview};
pub use chart::{ChartAnswer, ChartRequest, ChartSeries, chart};
pub use documents::{DocumentsAnswer, DocumentsForm, DocumentsRequest, Row, documents};
pub use export::{ExportPage, ExportRequest, export};
pub use expression::{PromqlSettings, STEPS_MAX, evaluate, evaluate_vector};
pub use facets::{FacetsAnswer, TagFacet, ValueFacet, facets};
pub use find::{FindAnswer, FindRequest, FoundMetric, find};
pub use grouping::{Merge, Rank};
pub use held::{AskedSeries, HELD_SERIES_MAX, HeldAnswer, HeldRequest, held};
pub use hosts::{HostsAnswer, HostsRemoved};
pub use levels::{LevelPart, LevelsDocument};
pub use listing::{
    ListedMetric, list_label_names, list_label_values, list_metrics, with_samples_since,
};
pub use matchers::{MatchOperator, SeriesMatcher, whole_pattern};
pub use matching::select_series;
pub use nested::{MinuteTotals, NestedDocument, SlotNumber, SlotValue, SlotValues};
pub(crate) use pipeline::fuzz as fuzz_aggregate;
pub use pipeline::{AggregateAnswer, AggregateRequest, aggregate};
pub use promql::{
    Labels, MatrixSeries, Points, PromqlAnswer, PromqlError, PromqlLimits, PromqlRequest,
    PromqlValue, VectorSample, check_promql, check_rule_promql, format_promql,
    lengths_of_plain_promql, measured_promql, promql, promql_tree, quantile_of_buckets,
    series_matchers,
};
pub use resolution::Resolution;
pub use retry::run_until_settled;
pub use select::{Selector, SeriesAnswer, SeriesEntry, series};
pub use senders::{SenderEntry, SenderEpoch, SendersAnswer, SendersRemoved, senders};
pub use sparklines::{
    FullestFilesystem, HostLines, SharedSparklines, Spark, Sparklines, SparklinesAnswer,
};
pub use storage::{
    BoundedBytes, ListedPartition, PartitionState, StorageAnswer, StoredBytes, StoredGranularity,
    StoredJournal, storage,
};
pub use stored::{
    CellPlace, ShownDocument, ShownPart, ShownSlot, StoredCell, StoredDocumentAnswer,
    StoredDocumentRequest, StoredPartition, StoredSeries, stored_document,
};
pub use tail::{Tail, TailCell, TailEvent, TailRequest};
pub use timestamp::Timestamp;

use std::ops::Range;

use crate::{
    model::{GranularityIndex, UnixMillis},
    policy::coverage::Coverage,
    store::{Store, StoreError},
};

/// Bounds of one answer.
#[derive(Debug, Clone, Copy)]
pub struct QueryLimits {
    /// Series, at most.
    pub series_max: usize,
    /// Points or rows, at most.
    pub points_max: usize,
    /// Series that may be read for fewer lines of an answer.
    pub read_series_max: usize,
    /// Slots that may be read.
    pub read_points_max: usize,
}

impl QueryLimits {
    /// Limits under which no more is read than an answer may show.
    pub fn new(series_max: usize, points_max: usize) -> Self {
        Self { series_max, points_max, read_series_max: series_max, read_points_max: points_max }
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The request cannot be answered as it is.
    #[error("{0}")]
    Invalid(String),
    /// The answer would be larger than allowed.
    #[error("{0}")]
    TooMuch(String),
    /// The queries under way hold what it needs.
    #[error("{0}")]
    Busy(String),
    /// It took too long.
    #[error("{0}")]
    Timeout(String),
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl QueryError {
    /// See [`StoreError::is_settled`].
    pub fn is_settled(&self) -> bool {
        matches!(self, Self::Store(cause) if cause.is_settled())
    }
}

impl From<OverBudget> for QueryError {
    fn from(cause: OverBudget) -> Self {
        match cause {
            OverBudget::Memory => {
                Self::Busy(format!("{cause} (promql.memory_max): ask for less, or later"))
            }
            OverBudget::Time => Self::Timeout(format!(
                "{cause}: ask for a shorter range, a coarser resolution or fewer series, or raise \
                 limits.query_timeout"
            )),
            OverBudget::Abandoned => Self::Timeout(cause.to_string()),
        }
    }
}

/// What each granularity of the store holds; those that take no samples any more are among them
/// where they hold something of a range.
fn coverage<'a>(store: &'a Store, range: &Range<UnixMillis>, now: UnixMillis) -> Coverage<'a> {
    let (living, mut gaps) = (store.granularities(), store.gaps());
    let retired = gaps.split_off(living.count());
    let all = store.all_granularities().iter().enumerate();
    let retired = all.skip(living.count()).zip(retired);
    retired.fold(Coverage::new(living, gaps, now), |coverage, ((index, own), gaps)| {
        coverage.with_retired(GranularityIndex(index), own, gaps, range, now)
    })
}
