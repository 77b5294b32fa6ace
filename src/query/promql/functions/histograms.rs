//! Functions of classic histograms, whose series differ in the label `le`, and of native ones.
//!
//! Must never know: the store, the tree, how a quantile is calculated.

use std::collections::{HashMap, HashSet};

use super::{
    Arguments,
    buckets::{self, Bucket},
};
use crate::model::Histogram as NativeHistogram;
use crate::query::promql::{
    context::Context,
    value::{
        annotations::Notes,
        histograms::has_unbucketed,
        numbers::open_metrics_text,
        series::{ABSENT, Series, is_present, join_same},
        steps::Steps,
    },
};
use crate::query::{Labels, QueryError};

/// The label with a bucket's upper bound.
const BOUND_LABEL: &str = "le";

/// A classic histogram: its labels, and the bound and index of each bucket's series.
struct ClassicHistogram {
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
    let (steps, notes) = (context.steps, &context.notes.at_argument(0));
    context.bounds.check_points(series.len() * all.len(), steps.count)?;
    for (index, values) in all.iter().enumerate() {
        context.notes.at_argument(index + 2).check_quantiles(values);
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
                Series::new(entry.labels.with(&label, &text), drop_metric, values)
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
    let notes = &context.notes.at_argument(2);
    let of_native = |step: usize, histogram: &NativeHistogram, metric: &str| {
        if has_unbucketed(histogram) {
            notes.inform(|| {
                "input to histogram_fraction has NaN observations, which are excluded from all \
                 fractions"
                    .to_owned()
                    + &for_metric(metric)
            });
        }
        histogram.fraction(low[step], high[step])
    };
    Ok(by_histogram(&series, context.steps, notes, of_native, |step, all, _| {
        buckets::fraction(low[step], high[step], all)
    }))
}

/// Returns the end of a note about a metric.
fn for_metric(metric: &str) -> String {
    if metric.is_empty() { String::new() } else { format!(" for metric name {metric:?}") }
}

/// Returns the quantile of each histogram.
fn quantile_of_each(
    quantiles: &[f64],
    series: &[Series],
    steps: &Steps,
    notes: &Notes<'_>,
) -> Vec<Series> {
    let of_native = |step: usize, histogram: &NativeHistogram, metric: &str| {
        let value = histogram.quantile(quantiles[step]);
        if (0.0..=1.0).contains(&quantiles[step]) && has_unbucketed(histogram) {
            let result = if value.is_nan() { "NaN" } else { "skewed higher" };
            notes.inform(|| {
                format!(
                    "input to histogram_quantile has NaN observations, result is {result}{}",
                    for_metric(metric)
                )
            });
        }
        value
    };
    by_histogram(series, steps, notes, of_native, |step, all, metric| {
        let (value, fixed) = buckets::quantile(quantiles[step], all);
        if fixed {
            notes.inform(|| {
                format!(
                    "input to histogram_quantile needed to be fixed for monotonicity (see \
                     https://prometheus.io/docs/prometheus/latest/querying/functions/#histogram_quantile){}",
                    for_metric(metric)
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
    of_native: impl Fn(usize, &NativeHistogram, &str) -> f64,
    of_classic: impl Fn(usize, Vec<Bucket>, &str) -> f64,
) -> Vec<Series> {
    let classics = classic_histograms(series, notes);
    let buckets_at = |classic: &ClassicHistogram, step: usize| -> Vec<Bucket> {
        let members = classic.members.iter();
        let buckets = members
            .map(|(bound, index)| Bucket { bound: *bound, count: series[*index].values[step] });
        buckets.filter(|bucket| is_present(bucket.count)).collect()
    };
    // Times at which a histogram has both forms, which has no result.
    let mut mixed: HashSet<(usize, usize)> = HashSet::new();
    let mut out = Vec::new();
    let mut positions: HashMap<Labels, usize> = HashMap::new();
    if series.iter().any(|entry| !entry.histograms.is_empty()) {
        for (index, classic) in classics.iter().enumerate() {
            positions.entry(classic.labels.without_metric()).or_insert(index);
        }
    }
    for entry in series.iter().filter(|entry| !entry.histograms.is_empty()) {
        let metric = entry.labels.metric();
        let labels = entry.labels.without_metric();
        let classic = positions.get(&labels).copied();
        let mut values = vec![ABSENT; steps.count];
        for (step, histogram) in entry.histograms.iter() {
            let classic = classic.filter(|index| !buckets_at(&classics[*index], step).is_empty());
            if let Some(index) = classic {
                mixed.insert((index, step));
                notes.warn(|| {
                    "vector contains a mix of classic and native histograms".to_owned()
                        + &for_metric(metric)
                });
            } else {
                values[step] = of_native(step, histogram, metric);
            }
        }
        out.push(Series::new(entry.labels.clone(), true, values));
    }
    for (index, classic) in classics.iter().enumerate() {
        let value = |step| {
            let buckets = buckets_at(classic, step);
            if buckets.is_empty() || mixed.contains(&(index, step)) {
                return ABSENT;
            }
            of_classic(step, buckets, classic.labels.metric())
        };
        let values = (0..steps.count).map(value).collect();
        out.push(Series::new(classic.labels.clone(), true, values));
    }
    out.retain(Series::has_values);
    out
}

/// Groups the series by histogram; series without a valid bound are left out.
fn classic_histograms(series: &[Series], notes: &Notes<'_>) -> Vec<ClassicHistogram> {
    let mut positions: HashMap<Labels, usize> = HashMap::new();
    let mut found: Vec<ClassicHistogram> = Vec::new();
    let has_numbers = |entry: &Series| entry.values.iter().any(|value| is_present(*value));
    for (index, entry) in series.iter().enumerate().filter(|(_, entry)| has_numbers(entry)) {
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
            found.push(ClassicHistogram { labels: labels.clone(), members: Vec::new() });
            found.len() - 1
        });
        found[position].members.push((bound, index));
    }
    for histogram in &mut found {
        histogram.members.sort_by(|left, right| left.0.total_cmp(&right.0));
    }
    found
}
