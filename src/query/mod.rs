//! Queries of the store: charts, documents, lists of series and senders, `PromQL`, pipelines,
//! tails, exports.
//!
//! Must never know: HTTP, how settings are read. A request is a checked struct, each query runs
//! within a `budget`, and the answer is a struct that serializes. Modules from the ground up:
//! `time` and `budget`, `cells`, `series`, then one module for each kind of answer.

// The shared test setup refers to this crate as `granary`.
#[cfg(test)]
extern crate self as granary;
#[cfg(test)]
#[path = "../../tests/support/setup.rs"]
#[allow(dead_code, clippy::panic, reason = "the tests in tests/ use more of it")]
mod setup;

// Paths begin as in the crate `granary`, which reexports these crates.
use crate as query;
use granary_clock as clock;
use granary_model as model;
use granary_policy as policy;
use granary_shell as shell;
use granary_store as store;

mod budget;
mod cells;
mod chart;
mod distribution;
mod documents;
mod error;
mod expression_limits;
mod graphite;
mod histograms;
mod messages;
mod moved;
mod overview;
mod pipeline;
mod promql;
mod readings;
mod series;
mod shards;
mod stream;
mod time;
mod wire;

pub use crate::model::Display;
pub use budget::{
    Budget, QueryLimits, QueryResources, Reservation, Scheduler, Waiter, run_with_retries,
};
pub use chart::{
    ChartAnswer, ChartRequest, ChartSeries, ChartStep, chart, chart_of_shards, chart_step,
};
pub use distribution::Distribution;
pub use documents::{
    CellLocation, DocumentRow, DocumentsAnswer, DocumentsForm, DocumentsRequest, DocumentsStep,
    LevelPart, LevelsDocument, MinuteTotals, NestedDocument, PreallocateAnswer, PreallocateRequest,
    PreallocatedLevel, ShownDocument, ShownPart, ShownSlot, SlotNumber, SlotValue, SlotValues,
    StoredCell, StoredDocumentAnswer, StoredDocumentRequest, StoredPartition, documents,
    documents_of_shards, documents_step, preallocate, stored_document,
};
pub use error::{OverBudget, QueryError};
pub use expression_limits::ExpressionLimits;
pub use graphite::{
    GraphiteStore, Line, NodeKinds, RenderAnswer, RenderRequest, TagsRequest, civil_text,
    graphite_of_question, list_tags,
};
pub use messages::{ask_all, read_answer, read_question, written};
pub use moved::{
    MovedAnswer, MovedPart, MovedRequest, MovedSeries, moved, moved_of_shard, moved_of_shards,
};
pub use overview::{
    BoundedBytes, FullestFilesystem, HostAlerts, HostLines, HostsAnswer, HostsRemoved,
    ListedPartition, PartitionState, SenderEntry, SenderEpoch, SendersAnswer, SendersPart,
    SendersRemoved, SendersRequest, SharedSparklines, Spark, SparklineSums, Sparklines,
    SparklinesAnswer, StorageAnswer, StoredBytes, StoredGranularity, StoredJournal, storage,
};
pub use pipeline::fuzz as fuzz_pipeline;
pub use pipeline::{AggregateAnswer, AggregateRequest, aggregate};
pub use promql::{
    MatrixSeries, Points, PromqlAnswer, PromqlRequest, PromqlSettings, PromqlValue, STEPS_MAX,
    VectorSample, aggregate_of_question, cells_of_question, check_promql, check_rule_promql,
    durations_of_plain_promql, evaluate_at, evaluate_vector, format_promql, key_selector,
    labels_always_differ, measured_promql, promql, promql_tree, quantile_of_buckets,
    series_matchers,
};
pub use readings::{
    ReadingsRequest, SeriesReadings, each_series, newest_readings, readings_of_question,
};
pub use series::{
    COVERED_SERIES_MAX, Cardinality, ChangeAnswer, ChangedSeries, CoverageAnswer, CoverageRequest,
    ErasedResolution, ErasureAnswer, FacetCounts, FacetsAnswer, FindAnswer, FindRequest,
    FoundMetric, Labels, ListedMetric, MatchOperator, NewName, Rank, RequestedSeries, Selector,
    SeriesAnswer, SeriesCounts, SeriesEntry, SeriesMatcher, SeriesMerge, SeriesToken, TagFacet,
    ValueFacet, cardinality, facets, find, list_label_names, list_label_values, list_metrics,
    preview, select_series, series, series_counts, series_counts_of_shard, series_coverage,
    tsdb_status_of_shard, whole_pattern, with_samples_since,
};
pub use shards::{
    AGGREGATE, CELLS, DOCUMENTS, EXPORT, ErrorOfShard, GRAPHITE, OtherShards, READINGS,
    ReserveBytes, SENDERS, SERIES_COUNTS, SPARKLINES, ShardsOfProject, TSDB_STATUS,
};
pub use stream::{
    ExportPage, ExportRequest, Tail, TailCell, TailEvent, TailRequest, export, export_of_question,
};
pub use time::{CalendarUnit, Resolution, Timestamp, time_zone, zone_name};
