//! Quantiles and fractions of classic histograms: series that differ by the label `le`.
//!
//! Must never know: the store, the tree.

use std::collections::HashMap;

use crate::query::promql::{
    Labels, PromqlError,
    value::{
        annotations::Notes,
        numbers::{almost_equal, open_metrics_text},
        series::{ABSENT, Series, is_present, join_same},
        steps::Grid,
    },
};

/// The label that holds a bucket's upper bound.
const BOUND_LABEL: &str = "le";
/// Differences of this part between buckets come from sums of floats, not from the data.
const NOISE: f64 = 1e-12;

/// How many observations were at most `bound`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Bucket {
    bound: f64,
    count: f64,
}

/// A histogram: its labels, and bound and index of each bucket's series.
struct Histogram {
    labels: Labels,
    members: Vec<(f64, usize)>,
}

/// `histogram_quantile`.
pub(crate) fn quantiles(
    quantiles: &[f64],
    series: &[Series],
    grid: &Grid,
    notes: &mut Notes,
) -> Vec<Series> {
    by_histogram(series, grid, notes, |at, buckets, metric, notes| {
        let (value, fixed) = quantile(quantiles[at], buckets);
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

/// `histogram_quantiles`: each quantile's value in a series of its own, the quantile as a label.
pub(crate) fn several_quantiles(
    label: &str,
    quantiles: &[Vec<f64>],
    series: &[Series],
    grid: &Grid,
    notes: &mut Notes,
) -> Result<Vec<Series>, PromqlError> {
    let mut out = Vec::new();
    for wanted in quantiles {
        let found = self::quantiles(wanted, series, grid, notes);
        // A quantile may be calculated, and another one at each time.
        let mut texts: Vec<String> = wanted.iter().map(|q| open_metrics_text(*q)).collect();
        let text_at = texts.clone();
        texts.sort();
        texts.dedup();
        for text in texts {
            out.extend(found.iter().map(|one| {
                let times = one.values.iter().zip(&text_at);
                let own = |(value, of): (&f64, &String)| if *of == text { *value } else { ABSENT };
                let (drop_metric, values) = (one.drop_metric, times.map(own).collect());
                Series { labels: one.labels.with(label, &text), drop_metric, values }
            }));
        }
    }
    out.retain(Series::has_values);
    join_same(out)
}

/// `histogram_fraction`.
pub(crate) fn fractions(
    low: &[f64],
    high: &[f64],
    series: &[Series],
    grid: &Grid,
    notes: &mut Notes,
) -> Vec<Series> {
    by_histogram(series, grid, notes, |at, buckets, _, _| fraction(low[at], high[at], buckets))
}

fn by_histogram(
    series: &[Series],
    grid: &Grid,
    notes: &mut Notes,
    mut compute: impl FnMut(usize, Vec<Bucket>, &str, &mut Notes) -> f64,
) -> Vec<Series> {
    let mut out = Vec::new();
    for histogram in histograms(series, notes) {
        let values = (0..grid.count)
            .map(|at| {
                let members = histogram.members.iter();
                let buckets: Vec<_> = members
                    .map(|(bound, index)| Bucket {
                        bound: *bound,
                        count: series[*index].values[at],
                    })
                    .filter(|bucket| is_present(bucket.count))
                    .collect();
                if buckets.is_empty() {
                    return ABSENT;
                }
                compute(at, buckets, histogram.labels.metric(), notes)
            })
            .collect();
        out.push(Series { labels: histogram.labels, drop_metric: true, values });
    }
    out.retain(Series::has_values);
    out
}

/// Gathers the series of each histogram; those without a readable bound are left out.
fn histograms(series: &[Series], notes: &mut Notes) -> Vec<Histogram> {
    let mut places: HashMap<Labels, usize> = HashMap::new();
    let mut found: Vec<Histogram> = Vec::new();
    for (index, one) in series.iter().enumerate() {
        let text = one.labels.get(BOUND_LABEL);
        let Some(bound) = bound_of(text) else {
            let metric = one.labels.metric();
            notes.warn(|| {
                format!(
                    "bucket label {BOUND_LABEL:?} is missing or has a malformed value of {text:?} \
                     for metric name {metric:?}"
                )
            });
            continue;
        };
        let labels = one.labels.filtered(|name| name != BOUND_LABEL);
        let place = *places.entry(labels).or_insert_with_key(|labels| {
            found.push(Histogram { labels: labels.clone(), members: Vec::new() });
            found.len() - 1
        });
        found[place].members.push((bound, index));
    }
    for histogram in &mut found {
        histogram.members.sort_by(|one, next| one.0.total_cmp(&next.0));
    }
    found
}

fn bound_of(text: &str) -> Option<f64> {
    text.parse().ok()
}

/// One bucket for each bound, whose counts do not fall. None when it is no whole histogram.
/// Whether counts had to be changed by more than noise is the second answer.
fn whole(mut buckets: Vec<Bucket>, fix: bool) -> Option<(Vec<Bucket>, bool)> {
    if buckets.last().is_none_or(|last| last.bound != f64::INFINITY) {
        return None;
    }
    buckets.dedup_by(|next, own| {
        let same = next.bound == own.bound;
        if same {
            own.count += next.count;
        }
        same
    });
    let mut fixed = false;
    if fix {
        let mut before = buckets[0].count;
        for bucket in &mut buckets[1..] {
            if bucket.count == before {
                continue;
            }
            let noise = almost_equal(before, bucket.count, NOISE);
            if noise || bucket.count < before {
                fixed |= !noise;
                bucket.count = before;
            } else {
                before = bucket.count;
            }
        }
    }
    Some((buckets, fixed))
}

/// The quantile, linear within its bucket, and whether the counts had to be fixed.
fn quantile(q: f64, buckets: Vec<Bucket>) -> (f64, bool) {
    if q.is_nan() {
        return (f64::NAN, false);
    }
    if !(0.0..=1.0).contains(&q) {
        return (if q < 0.0 { f64::NEG_INFINITY } else { f64::INFINITY }, false);
    }
    let Some((buckets, fixed)) = whole(buckets, true) else { return (f64::NAN, false) };
    let last = buckets.len() - 1;
    let observed = buckets[last].count;
    if last == 0 || observed == 0.0 {
        return (f64::NAN, fixed);
    }
    let rank = q * observed;
    let holds = first_of(&buckets[..last], rank);
    if holds == last {
        return (buckets[last - 1].bound, fixed);
    }
    let bucket = buckets[holds];
    if holds == 0 && bucket.bound <= 0.0 {
        return (bucket.bound, fixed);
    }
    let before = holds.checked_sub(1).map(|index| buckets[index]);
    let Bucket { bound: from, count } = before.unwrap_or(Bucket { bound: 0.0, count: 0.0 });
    (from + (bucket.bound - from) * ((rank - count) / (bucket.count - count)), fixed)
}

/// The first bucket of at least so many observations. Which one is found where counts are NaN is
/// what halving finds, as in Prometheus.
fn first_of(buckets: &[Bucket], rank: f64) -> usize {
    let (mut from, mut to) = (0, buckets.len());
    while from < to {
        let middle = usize::midpoint(from, to);
        if buckets[middle].count >= rank { to = middle } else { from = middle + 1 }
    }
    from
}

/// The part of the observations between two values.
fn fraction(low: f64, high: f64, buckets: Vec<Bucket>) -> f64 {
    let Some((buckets, _)) = whole(buckets, false) else { return f64::NAN };
    let observed = buckets.last().map_or(0.0, |last| last.count);
    if observed == 0.0 || observed.is_nan() || low.is_nan() || high.is_nan() {
        return f64::NAN;
    }
    if low >= high {
        return 0.0;
    }
    (rank_of(high, &buckets) - rank_of(low, &buckets)) / observed
}

/// How many observations lie below a value, linear within its bucket. Where a bucket has no lower
/// bound, all of it does; where it has no upper one, nothing of it.
fn rank_of(value: f64, buckets: &[Bucket]) -> f64 {
    let mut below = Bucket { bound: f64::NEG_INFINITY, count: 0.0 };
    for bucket in buckets {
        // The first bucket begins at zero, unless it ends below.
        let from = if below.bound.is_infinite() && bucket.bound > 0.0 { 0.0 } else { below.bound };
        if value <= from {
            return below.count;
        }
        if value < bucket.bound {
            if from == f64::NEG_INFINITY {
                return bucket.count;
            }
            let part = (value - from) / (bucket.bound - from);
            return below.count + (bucket.count - below.count) * part;
        }
        below = *bucket;
    }
    below.count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buckets(all: &[(f64, f64)]) -> Vec<Bucket> {
        all.iter().map(|(bound, count)| Bucket { bound: *bound, count: *count }).collect()
    }

    #[test]
    fn quantiles_are_linear_within_a_bucket() {
        let all = [(0.1, 2.0), (0.5, 6.0), (1.0, 8.0), (f64::INFINITY, 10.0)];
        for (q, expected) in [
            (0.0, 0.0),
            (0.1, 0.05),
            (0.4, 0.3),
            (0.8, 1.0),
            (0.9, 1.0),
            (-1.0, f64::NEG_INFINITY),
            (2.0, f64::INFINITY),
        ] {
            let (found, fixed) = quantile(q, buckets(&all));
            assert!((found == expected || (found - expected).abs() < 1e-12) && !fixed, "{q}");
        }
        assert!(quantile(0.5, buckets(&all[..3])).0.is_nan());
        assert!(quantile(0.5, buckets(&[(f64::INFINITY, 3.0)])).0.is_nan());
        assert_eq!(quantile(0.5, buckets(&[(-1.0, 4.0), (f64::INFINITY, 4.0)])).0, -1.0);
        let falling = [(1.0, 5.0), (2.0, 3.0), (f64::INFINITY, 6.0)];
        assert!(quantile(0.5, buckets(&falling)).1);
    }

    #[test]
    fn fractions_are_linear_within_a_bucket() {
        let all = [(0.1, 2.0), (0.5, 6.0), (f64::INFINITY, 10.0)];
        for (low, high, expected) in [
            (0.0, 0.1, 0.2),
            (0.0, 0.3, 0.4),
            (0.1, 0.5, 0.4),
            (-1.0, f64::INFINITY, 1.0),
            (1.0, 0.0, 0.0),
        ] {
            let found = fraction(low, high, buckets(&all));
            assert!((found - expected).abs() < 1e-12, "{low} {high} {found}");
        }
        let below_zero = [(-3.0, 10.0), (-2.0, 12.0), (-1.0, 15.0), (f64::INFINITY, 100.0)];
        for (low, high, expected) in [
            (-4.0, -2.0, 0.02),
            (f64::NEG_INFINITY, -2.0, 0.12),
            (-2.5, -1.0, 0.04),
            (-9.0, -8.0, 0.0),
            (-1.5, 5.0, 0.015),
            (-1.0, f64::INFINITY, 0.85),
        ] {
            let found = fraction(low, high, buckets(&below_zero));
            assert!((found - expected).abs() < 1e-12, "{low} {high} {found}");
        }
    }
}
