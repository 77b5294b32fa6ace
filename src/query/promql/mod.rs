//! PromQL over cells: a request comes as a checked struct, an answer goes as plain values.
//!
//! Must never know: HTTP. An expression is parsed within bounds (`source.rs`), evaluated for all its
//! times at once, series by series (`evaluate.rs`), over cells that are read once (`load.rs`).
//!
//! # What a sample is
//!
//! A cell of one or two samples is these samples, with their exact times and values. Of a cell of
//! more, the first and the last are known, and the sum, smallest and largest of all.
//!
//! - A selector gives the newest known sample at or before a time, not older than the lookback. In
//!   between the first and the last sample of a merged cell a series lives, however wide the slot.
//! - A window `(t - r, t]` holds the cells whose last sample lies in it. Windows side by side count
//!   every sample once. Where a window is shorter than a merged slot, the slot that it ends in
//!   answers for it.
//! - A stale marker ends a series after its latest sample; markers before newer samples are not
//!   kept.
//!
//! # Counters, deltas and gauges
//!
//! The kind of a series decides, not the function's wish:
//!
//! - Of counters, `rate` and `increase` add up the increases stored at ingest: exact over resets,
//!   never extrapolated; one sample in the window is enough when one came before it. Where a window
//!   cuts merged slots, the increases count for the time that they cover. `irate` goes by the last
//!   cell.
//! - Of deltas (events counted by the sender) the values are the increases.
//! - Of gauges, and in subqueries, `rate`, `increase` and `delta` calculate as Prometheus does,
//!   extrapolation included.
//!
//! # What merged samples do not answer
//!
//! `stddev_over_time`, `stdvar_over_time`, `quantile_over_time` but for 0 and 1, `mad_over_time`,
//! `changes` and `resets` need every sample; so do `sum_over_time` and `avg_over_time` of a counter,
//! whose cells hold increases. They are exact where cells hold one or two samples or one value, or
//! where a counter's rates tell, and an error elsewhere that says what to use instead. `idelta` and
//! smoothing go by the samples known; `deriv` and `predict_linear` by all, as if those between the
//! first and the last of a cell were evenly spaced.
//!
//! # Which granularity
//!
//! `policy::query_plan` chooses for each selector. An instant query takes the finest granularity
//! that keeps its whole window, and finer ones for the slot that the window ends in. A range query
//! takes the coarsest that answers as well as finer ones:
//! its slots' borders are the windows' borders, or a window is at least 60 times as long as a slot.
//! Functions that need every sample take the finest, those that need many readings go by the second
//! rule only.
//! On such a border a sample counts to the window that begins there, not to the one that ends
//! there. Where a granularity is dropped already, the next coarser one goes on and a warning says
//! so; a rate over less than a slot is that of the slot.
//!
//! # Beside Prometheus
//!
//! Metric names are dropped at the end of an evaluation, as with Prometheus' delayed name removal:
//! `sum by (__name__)` of a rate keeps series apart. Without `promql.delayed_name_removal` they are
//! dropped where they stop fitting. Native histograms are not
//! there. Positions are looked up in the text: complaints of the parser's grammar carry none.
//! The parser compiles patterns without a bound and panics on durations out of range; its input is
//! bounded before, patterns are handed past it, and a panic is an error.

mod aggregate;
mod answer;
mod bounds;
mod buckets;
mod columns;
mod constant;
mod count_values;
mod durations;
mod evaluate;
mod fill;
mod format;
mod functions;
mod info;
mod instants;
mod label_functions;
mod labels;
mod lengths;
mod literals;
mod load;
mod matching;
mod maths;
mod numbers;
mod operators;
mod over_time;
mod picks;
mod positions;
mod rates;
mod reach;
mod regression;
mod source;
mod windows;
mod wording;

use promql_parser::parser::Expr;

pub use format::format_promql;
pub use labels::{Labels, Texts};
pub use source::series_matchers;

use crate::{
    model::UnixMillis,
    store::{Store, StoreError},
};

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromqlRequest {
    /// The expression.
    pub query: String,
    /// The first, or of an instant query the only, evaluation time.
    pub start: UnixMillis,
    /// The last evaluation time, inclusive.
    pub end: UnixMillis,
    /// Between evaluation times, in milliseconds; 0 for an instant query at `start`.
    pub step_ms: i64,
    /// How old a sample may be that still counts as the value of a series, in milliseconds.
    pub lookback_ms: i64,
    /// Whether metric names that no longer fit are dropped at the end only, not where they stop
    /// fitting.
    pub delayed_name_removal: bool,
}

/// Bounds of one answer.
#[derive(Clone, Copy)]
pub struct PromqlLimits<'a> {
    /// Series that a selector may match, at most.
    pub series_max: usize,
    /// Steps times series of the answer and of every value on the way to it, and cells loaded, at
    /// most.
    pub points_max: usize,
    /// Evaluation times of a range query, at most.
    pub steps_max: usize,
    /// Bytes of the expression, at most.
    pub query_bytes_max: usize,
    /// Bytes that a compiled pattern may take, at most.
    pub regex_bytes_max: usize,
    /// Says whether the time for the answer is over. Asked often, and never with a lock held: it
    /// may let other queries go first.
    pub expired: &'a dyn Fn() -> bool,
    /// Takes bytes of the memory that all queries share, until the query ends; false when there
    /// are not so many left.
    pub take_memory: &'a dyn Fn(usize) -> bool,
}

impl PromqlLimits<'_> {
    /// Takes memory until the query ends.
    ///
    /// # Errors
    /// When there is not so much left.
    pub fn take(&self, bytes: usize) -> Result<(), PromqlError> {
        if (self.take_memory)(bytes) {
            return Ok(());
        }
        Err(PromqlError::Busy(
            "the queries under way take all memory that they may: try again, ask for a shorter \
             range, a larger step or fewer series, or raise promql.memory_max"
                .to_owned(),
        ))
    }
}

/// The answer of a range query is a matrix; that of an instant query is what the expression is.
#[derive(Debug, Clone, PartialEq)]
pub enum PromqlValue {
    /// Unix milliseconds and a number.
    Scalar(i64, f64),
    /// Unix milliseconds and a text.
    String(i64, String),
    /// One number a series. In order of labels unless the expression sorts.
    Vector(Vec<VectorSample>),
    /// Several numbers a series, in order of labels.
    Matrix(Vec<MatrixSeries>),
}

/// A series at one time.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorSample {
    /// Which series.
    pub labels: Labels,
    /// The evaluation time, Unix milliseconds.
    pub at: i64,
    /// Its value.
    pub value: f64,
}

/// A series over time.
#[derive(Debug, Clone, PartialEq)]
pub struct MatrixSeries {
    /// Which series.
    pub labels: Labels,
    /// Unix milliseconds and value, ascending.
    pub points: Vec<(i64, f64)>,
}

/// The answer with what a reader should know of it.
#[derive(Debug, Clone, PartialEq)]
pub struct PromqlAnswer {
    /// The values.
    pub value: PromqlValue,
    /// What may be wrong with the answer, each once.
    pub warnings: Vec<String>,
    /// What may be wrong with the expression, each once.
    pub infos: Vec<String>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum PromqlError {
    /// The expression cannot be parsed or has wrong types; Prometheus: 400 `bad_data`.
    #[error("{0}")]
    BadData(String),
    /// The values do not allow it; Prometheus: 422 `execution`.
    #[error("{0}")]
    Execution(String),
    /// A limit is passed; the text names it and the remedy. Prometheus: 422 `execution`.
    #[error("{0}")]
    TooMuch(String),
    /// All queries together need more memory than they may; Prometheus: 503 `unavailable`.
    #[error("{0}")]
    Busy(String),
    /// It took too long; Prometheus: 503 `timeout`.
    #[error("{0}")]
    Timeout(String),
    /// The store cannot be read; Prometheus: 500 `internal`.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Answers a query.
///
/// # Errors
/// See [`PromqlError`].
pub fn promql(
    store: &Store,
    request: &PromqlRequest,
    limits: &PromqlLimits<'_>,
    now: UnixMillis,
) -> Result<PromqlAnswer, PromqlError> {
    let times = durations::QueryTimes {
        step: request.step_ms as f64 / 1000.0,
        range: request.end.0.saturating_sub(request.start.0) as f64 / 1000.0,
    };
    let expression = source::parse(&request.query, Some(times), limits)?;
    answer::answer(store, &expression, request, limits, now)
}

/// Parses an expression within the limits' bounds, for pages that only show it. The patterns of
/// `=~` and `!~` are not compiled.
///
/// # Errors
/// When it is no expression.
pub fn check_promql(query: &str, limits: &PromqlLimits<'_>) -> Result<Expr, PromqlError> {
    source::parse(query, None, limits)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bounds as a daemon has them, and all the time of the world.
    pub(super) const LIMITS: PromqlLimits<'static> = PromqlLimits {
        series_max: 1000,
        points_max: 10_000_000,
        steps_max: 11_000,
        query_bytes_max: 65_536,
        regex_bytes_max: 1 << 20,
        expired: &|| false,
        take_memory: &|_| true,
    };
}
