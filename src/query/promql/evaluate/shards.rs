//! Aggregations in a store with several shards: each shard aggregates its series, and sends the
//! state of its groups instead of cells.
//!
//! A shard also sends the hashes of its series, unless the asking node knows them: a series that
//! several shards have must not be aggregated twice. Such an aggregation, and one of native
//! histograms, is computed from cells. Must never know: where the shards are.

use std::{cell::RefCell, sync::Arc};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::expression::Evaluator;
use crate::{
    model::UnixMillis,
    query::{
        AGGREGATE, ExpressionLimits, QueryError,
        budget::cache::SeriesOfShards,
        messages::{damaged_answer, damaged_question, written},
        promql::{
            aggregation::{PartialAggregator, is_mergeable, partial_aggregator},
            context::{Context, bounds::Bounds},
            parse::parse_cached,
            selectors::{Selectors, shards::read_series::ReadSeries, sizes::ChunkSizes},
            syntax::{
                span::TextSpan,
                tree::{Aggregate, Expr},
            },
            value::{
                annotations::{Annotations, Notes},
                series::Series,
                steps::{QueryRange, QueryTimes, Steps},
            },
        },
        wire::{count, put_count, put_text, take, take_slice, text},
    },
    store::Store,
};

/// A question for the state of an aggregation.
#[derive(Debug, Serialize, Deserialize)]
struct AggregateQuestion {
    query: String,
    /// The place of the aggregation in the query.
    span: (u32, u32),
    /// The start, the end and the step of the query.
    range: (i64, i64, i64),
    /// The values of `step()` and `range()` as bits, which stay as they are.
    times: (u64, u64),
    /// The start, the step and the number of the evaluation times.
    steps: (i64, i64, usize),
    lookback_ms: i64,
    delayed_name_removal: bool,
    /// The hashes of lists of series that the asking node knows.
    known: Vec<u64>,
}

/// The answer of a shard.
struct ShardState<'a> {
    has_histograms: bool,
    series_hash: u64,
    /// The hashes of the series, unless the asking node knows them.
    series: Option<Vec<u64>>,
    annotations: Annotations,
    state: &'a [u8],
}

impl Evaluator<'_> {
    /// Returns the result of an aggregation whose states the shards compute; `None` when the store
    /// has one shard, or the aggregation must be computed from cells.
    pub(super) fn aggregate_in_shards(
        &self,
        aggregation: &Aggregate,
        steps: &Steps,
        context: &Context<'_>,
    ) -> Result<Option<Vec<Series>>, QueryError> {
        let budget = self.bounds.limits.budget;
        if budget.others().is_none() || !self.is_pushed_down(aggregation, steps) {
            return Ok(None);
        }
        let (query, span) = (self.parsed.text(), aggregation.span);
        let cache_key = format!("{}:{}:{query}", span.start, span.end);
        let known = budget.cache().and_then(|cache| cache.series_of_shards(&cache_key));
        if known.as_ref().is_some_and(|known| known.needs_cells()) {
            return Ok(None);
        }
        let keep = |series: Arc<SeriesOfShards>| {
            if let Some(cache) = budget.cache() {
                cache.keep_series_of_shards(&cache_key, series);
            }
        };
        let question = AggregateQuestion {
            query: query.to_owned(),
            span: (span.start, span.end),
            range: (self.query.start, self.query.end, self.query.step_ms),
            times: (self.query.times.step.to_bits(), self.query.times.range.to_bits()),
            steps: (steps.start, steps.step_ms, steps.count),
            lookback_ms: self.selectors.lookback_ms,
            delayed_name_removal: self.delayed_name_removal,
            known: known.as_ref().map(|known| known.hashes()).unwrap_or_default(),
        };
        let question = written(&question)?;
        let fold = || self.bounds.released(|| self.fold(aggregation, steps, context));
        let ((mut partial, read), answers) = budget.beside_shards(AGGREGATE, &question, fold)?;
        let states: Option<Vec<_>> =
            answers.iter().map(|bytes| ShardState::decode(bytes)).collect();
        let states = states.ok_or_else(damaged_answer)?;
        if read.has_histograms || states.iter().any(|state| state.has_histograms) {
            keep(Arc::new(SeriesOfShards::with_histograms()));
            return Ok(None);
        }
        let of_shards = series_of_shards(read.hashes, &states, known.as_deref());
        let of_shards = of_shards.ok_or_else(damaged_answer)?;
        self.bounds.reserve(of_shards.bytes())?;
        let is_distinct = of_shards.is_distinct();
        keep(of_shards);
        if !is_distinct {
            return Ok(None);
        }
        for ShardState { annotations, state, .. } in states {
            self.notes.add_all(annotations);
            self.bounds.check_time()?;
            partial.merge(state).ok_or_else(damaged_answer)??;
        }
        let series = partial.finish()?;
        self.bounds.check_result(series.len(), steps.count)?;
        Ok(Some(series))
    }

    /// Returns true when each series of the input follows from one series of one shard.
    fn is_pushed_down(&self, aggregation: &Aggregate, steps: &Steps) -> bool {
        let Aggregate { operation, parameter, input, .. } = aggregation;
        let is_constant = |parameter: &Expr| parameter.selectors().is_empty();
        is_mergeable(*operation)
            && parameter.as_deref().is_none_or(is_constant)
            && input.selectors().len() == 1
            && self.is_read_in_chunks(input, steps)
    }

    /// Aggregates the series of this shard, and returns the series that were read.
    fn fold<'c>(
        &self,
        aggregation: &'c Aggregate,
        steps: &Steps,
        context: &'c Context<'c>,
    ) -> Result<(Box<dyn PartialAggregator + 'c>, ReadSeries), QueryError> {
        let Aggregate { operation, parameter, input, grouping, .. } = aggregation;
        let parameter = parameter.as_deref();
        let parameter = parameter.map(|parameter| self.value(parameter, steps)).transpose()?;
        let partial = partial_aggregator(*operation, grouping.as_ref(), parameter, context)?;
        let mut partial = partial.ok_or_else(damaged_question)?;
        let mut kept = self.bounds.keep();
        let fold = || {
            self.vector_in_chunks(input, steps, &mut |series| {
                kept.resize(self.selectors.listed_bytes())?;
                partial.add(series)?;
                self.bounds.check_result(partial.series_count(), steps.count)
            })
        };
        let ((), read) = self.selectors.of_this_shard(fold)?;
        Ok((partial, read))
    }
}

/// Answers another node's question for the state of an aggregation.
///
/// # Errors
/// See [`QueryError`].
pub fn aggregate_of_question(
    store: &Store,
    question: &[u8],
    limits: &ExpressionLimits<'_>,
    now: UnixMillis,
) -> Result<Vec<u8>, QueryError> {
    let question: AggregateQuestion =
        serde_json::from_slice(question).map_err(|_| damaged_question())?;
    let parsed = parse_cached(&question.query, limits)?;
    let span = TextSpan { start: question.span.0, end: question.span.1 };
    let aggregation = aggregate_at(&parsed.tree, span).ok_or_else(damaged_question)?;
    let (start, step_ms, count) = question.steps;
    let steps = Steps { start, step_ms, count };
    let ((start, end, step_ms), (step, range)) = (question.range, question.times);
    let times = QueryTimes { step: f64::from_bits(step), range: f64::from_bits(range) };
    let query = QueryRange { start, end, step_ms, times };
    let (bounds, annotations) = (Bounds::new(limits), RefCell::new(Annotations::default()));
    let notes = Notes::new(&annotations);
    let selectors = Selectors::new(store, now, question.lookback_ms, query, &bounds, notes);
    let evaluator = Evaluator {
        selectors: selectors.for_expression(&aggregation.input, ChunkSizes::DEFAULT),
        bounds: &bounds,
        notes,
        query,
        parsed: &parsed,
        delayed_name_removal: question.delayed_name_removal,
    };
    bounds.check_points(1, steps.count)?;
    let locations = evaluator.aggregate_locations(aggregation);
    let context = Context { notes: notes.of_call(&locations), ..evaluator.context(&steps) };
    let (partial, read) = evaluator.fold(aggregation, &steps, &context)?;
    let ReadSeries { hashes: series, has_histograms, .. } = read;
    let mut out = vec![u8::from(has_histograms)];
    let series_hash = hash_of(&series);
    out.extend(series_hash.to_le_bytes());
    let is_known = question.known.contains(&series_hash);
    out.push(u8::from(!is_known));
    if !is_known {
        put_count(series.len(), &mut out);
        for hash in &series {
            out.extend(hash.to_le_bytes());
        }
    }
    let annotations = annotations.borrow();
    for texts in [&annotations.warnings, &annotations.infos] {
        put_count(texts.len(), &mut out);
        for text in texts {
            put_text(text, &mut out);
        }
    }
    if !has_histograms {
        partial.encode(&mut out)?;
    }
    bounds.reserve(out.capacity())?;
    Ok(out)
}

/// Returns the aggregation at a place of the query.
fn aggregate_at(expression: &Expr, span: TextSpan) -> Option<&Aggregate> {
    if let Expr::Aggregate(aggregate) = expression
        && aggregate.span == span
    {
        return Some(aggregate);
    }
    expression.children().into_iter().find_map(|child| aggregate_at(child, span))
}

impl<'a> ShardState<'a> {
    fn decode(mut all: &'a [u8]) -> Option<Self> {
        let bytes = &mut all;
        let [has_histograms] = take(bytes)?;
        let series_hash = u64::from_le_bytes(take(bytes)?);
        let [has_series] = take(bytes)?;
        let series = if has_series == 1 {
            let length = count(bytes)?.checked_mul(size_of::<u64>())?;
            let (hashes, _) = take_slice(bytes, length)?.as_chunks::<8>();
            Some(hashes.iter().map(|hash| u64::from_le_bytes(*hash)).collect())
        } else {
            None
        };
        let mut texts = [Vec::new(), Vec::new()];
        for texts in &mut texts {
            for _ in 0..count(bytes)? {
                texts.push(text(bytes)?.to_owned());
            }
        }
        let [warnings, infos] = texts;
        let (has_histograms, annotations) = (has_histograms == 1, Annotations { warnings, infos });
        Some(Self { has_histograms, series_hash, series, annotations, state: all })
    }
}

fn hash_of(series: &[u64]) -> u64 {
    let bytes: Vec<u8> = series.iter().flat_map(|hash| hash.to_le_bytes()).collect();
    xxh3_64(&bytes)
}

/// Returns the series of all shards; `None` when a list is missing.
fn series_of_shards(
    own: Vec<u64>,
    states: &[ShardState<'_>],
    known: Option<&SeriesOfShards>,
) -> Option<Arc<SeriesOfShards>> {
    let mut lists = vec![(hash_of(&own), Arc::from(own))];
    for ShardState { series_hash, series, .. } in states {
        let list = match series {
            Some(series) => Arc::from(&series[..]),
            None => known?.list(*series_hash)?,
        };
        lists.push((*series_hash, list));
    }
    Some(Arc::new(SeriesOfShards::new(lists, known)))
}
