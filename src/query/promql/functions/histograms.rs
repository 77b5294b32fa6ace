//! Functions of classic histograms, whose series differ in the label `le`.
//!
//! Must never know: the store, the tree, how a quantile is calculated.

use std::collections::HashMap;

use super::{
    Arguments,
    buckets::{self, Bucket},
};
use crate::query::promql::{
    context::Context,
    value::{
        annotations::Notes,
        numbers::open_metrics_text,
        series::{ABSENT, Series, is_present, join_same},
        steps::Steps,
    },
};
use crate::query::{Labels, QueryError};

/// The label with a bucket's upper bound.
const BOUND_LABEL: &str = "le";

/// A histogram: its labels, and the bound and index of each bucket's series.
struct Histogram {
    labels: Labels,
    members: Vec<(f64, usize)>,
}

/// Evaluates `histogram_quantile`.
pub(super) fn quantile(
    mut arguments: Arguments<'_>,
    context: &Context<'_>,
) -> Result<Vec<Series>, QueryError> {
    let (quantiles, series) = (arguments.scalar()?, arguments.vector()?);
    context.notes.at_argument(0).check_quantiles(&quantiles);
    Ok(quantile_of_each(&quantiles, &series, context.steps, &context.notes.at_argument(1)))
}

/// Evaluates `histogram_quantiles`. The values of each quantile form a series with the quantile as
/// a label.
pub(super) fn quantiles(
    mut arguments: Arguments<'_>,
    context: &Context<'_>,
) -> Result<Vec<Series>, QueryError> {
    let (series, label, all) = (arguments.vector()?, arguments.text()?, arguments.scalars()?);
    let (steps, notes) = (context.steps, &context.notes);
    context.bounds.check_points(series.len() * all.len(), steps.count)?;
    for (index, values) in all.iter().enumerate() {
        notes.at_argument(index + 2).check_quantiles(values);
    }
    let mut out = Vec::new();
    for quantile_values in &all {
        let found = quantile_of_each(quantile_values, &series, steps, notes);
        // A quantile may be calculated and differ over time.
        let mut texts: Vec<String> =
            quantile_values.iter().map(|q| open_metrics_text(*q)).collect();
        let text_at = texts.clone();
        texts.sort();
        texts.dedup();
        for text in texts {
            out.extend(found.iter().map(|entry| {
                let times = entry.values.iter().zip(&text_at);
                let at_quantile = |(value, quantile): (&f64, &String)| {
                    if *quantile == text { *value } else { ABSENT }
                };
                let (drop_metric, values) = (entry.drop_metric, times.map(at_quantile).collect());
                Series { labels: entry.labels.with(&label, &text), drop_metric, values }
            }));
        }
    }
    out.retain(Series::has_values);
    join_same(out)
}

/// Evaluates `histogram_fraction`.
pub(super) fn fraction(
    mut arguments: Arguments<'_>,
    context: &Context<'_>,
) -> Result<Vec<Series>, QueryError> {
    let (low, high, series) = (arguments.scalar()?, arguments.scalar()?, arguments.vector()?);
    Ok(by_histogram(&series, context.steps, &context.notes, |step, all, _| {
        buckets::fraction(low[step], high[step], all)
    }))
}

/// Returns the quantile of each histogram.
fn quantile_of_each(
    quantiles: &[f64],
    series: &[Series],
    steps: &Steps,
    notes: &Notes<'_>,
) -> Vec<Series> {
    by_histogram(series, steps, notes, |step, all, metric| {
        let (value, fixed) = buckets::quantile(quantiles[step], all);
        if fixed {
            notes.inform(|| {
                format!(
                    "input to histogram_quantile needed to be fixed for monotonicity (see \
                     https://prometheus.io/docs/prometheus/latest/querying/functions/#histogram_quantile) \
                     for metric name {metric:?}"
                )
            });
        }
        value
    })
}

fn by_histogram(
    series: &[Series],
    steps: &Steps,
    notes: &Notes<'_>,
    compute: impl Fn(usize, Vec<Bucket>, &str) -> f64,
) -> Vec<Series> {
    let mut out = Vec::new();
    for histogram in histograms(series, notes) {
        let values = (0..steps.count)
            .map(|step| {
                let members = histogram.members.iter();
                let buckets: Vec<_> = members
                    .map(|(bound, index)| Bucket {
                        bound: *bound,
                        count: series[*index].values[step],
                    })
                    .filter(|bucket| is_present(bucket.count))
                    .collect();
                if buckets.is_empty() {
                    return ABSENT;
                }
                compute(step, buckets, histogram.labels.metric())
            })
            .collect();
        out.push(Series { labels: histogram.labels, drop_metric: true, values });
    }
    out.retain(Series::has_values);
    out
}

/// Groups the series by histogram; series without a valid bound are left out.
fn histograms(series: &[Series], notes: &Notes<'_>) -> Vec<Histogram> {
    let mut positions: HashMap<Labels, usize> = HashMap::new();
    let mut found: Vec<Histogram> = Vec::new();
    for (index, entry) in series.iter().enumerate() {
        let text = entry.labels.get(BOUND_LABEL);
        let Ok(bound) = text.parse() else {
            let metric = entry.labels.metric();
            notes.warn(|| {
                format!(
                    "bucket label {BOUND_LABEL:?} is missing or has a malformed value of {text:?} \
                     for metric name {metric:?}"
                )
            });
            continue;
        };
        let labels = entry.labels.filtered(|name| name != BOUND_LABEL);
        let position = *positions.entry(labels).or_insert_with_key(|labels| {
            found.push(Histogram { labels: labels.clone(), members: Vec::new() });
            found.len() - 1
        });
        found[position].members.push((bound, index));
    }
    for histogram in &mut found {
        histogram.members.sort_by(|left, right| left.0.total_cmp(&right.0));
    }
    found
}
