//! `rate`, `increase`, `delta`, `irate` and `idelta` of histograms.
//!
//! Must never know: the store, the tree.

use std::sync::Arc;

use super::{MixedWindow, Outcome, OutcomeResult, over_time::timeline};
use crate::{
    model::{Histogram, Kind, ResetHint},
    query::promql::{
        functions::{
            extrapolation::SampledChange,
            window::{RangeFunction, seconds},
        },
        value::{
            annotations::Notes,
            histograms::{
                HistogramReading, HistogramSum, TimedHistogram, divided, scaled, without_reset_hint,
            },
            series::Element,
        },
    },
};

/// Evaluates `rate`, `increase` and `delta`.
pub(super) fn rate(name: &str, window: &MixedWindow<'_>, notes: &Notes<'_>) -> Outcome {
    let is_delta = name == "delta";
    let is_stored = window.kind == Kind::DeltaHistogram
        || window.histograms.has_merged() && window.kind == Kind::Histogram;
    let increase = if is_stored && !is_delta {
        stored_increase(window, notes)
    } else {
        extrapolated(window, !is_delta, notes)
    };
    let range_s = seconds(window.numbers.range_ms());
    let per_second = |grown| if name == "rate" { divided(&grown, range_s) } else { grown };
    increase.map_or(Outcome::Nothing, |grown| Outcome::Histogram(Arc::new(per_second(grown))))
}

/// Returns the sum of the stored increases; those of cut slots count in part.
fn stored_increase(window: &MixedWindow<'_>, notes: &Notes<'_>) -> Option<Histogram> {
    let histograms = window.histograms;
    let frame = window.numbers.frame;
    // As with cells of numbers, a window of whole slots has the slots that end in it.
    let part = |slot: &TimedHistogram| match frame.cuts_slots {
        true => histograms.part(slot),
        false if slot.last_at <= histograms.to => 1.0,
        false => 0.0,
    };
    let parts = histograms.slots.iter().map(|slot| (slot, part(slot)));
    let mut parts = parts.filter(|(_, part)| *part > 0.0);
    let (first, first_part) = parts.next()?;
    let mut sum = HistogramSum::new(&scaled(&first.total, first_part));
    for (slot, part) in parts {
        if sum.add(&scaled(&slot.total, part)).is_err() {
            notes.warn_of_mixed_buckets(window.metric);
            return None;
        }
    }
    Some(Histogram { hint: ResetHint::Gauge, ..sum.total() })
}

/// Returns the change from the first reading to the last, extended to the window's edges as in
/// Prometheus.
fn extrapolated(
    window: &MixedWindow<'_>,
    is_counter: bool,
    notes: &Notes<'_>,
) -> Option<Histogram> {
    let readings = window.histograms.readings();
    let [first, .., last] = readings[..] else { return None };
    let grown = growth(&readings, is_counter, window.metric, notes)?;
    let floor = first.1.count;
    let change = SampledChange {
        from: first.0 as f64,
        to: last.0 as f64,
        count: readings.len() as u32,
        growth: grown.count,
        floor: Some(floor).filter(|floor| is_counter && grown.count > 0.0 && *floor >= 0.0),
    };
    let factor = change.factor(&window.numbers.frame)?;
    Some(Histogram { hint: ResetHint::Gauge, ..scaled(&grown, factor) })
}

/// Returns the change from the first reading to the last; counters are reset to zero.
fn growth(
    readings: &[HistogramReading<'_>],
    is_counter: bool,
    metric: &str,
    notes: &Notes<'_>,
) -> Option<Histogram> {
    let is_gauge = |histogram: &Histogram| histogram.hint == ResetHint::Gauge;
    let (first, last) = (readings.first()?.1, readings.last()?.1);
    if is_counter && readings.iter().any(|(_, reading)| is_gauge(reading)) {
        notes.warn(|| format!("this native histogram metric is not a counter: {metric:?}"));
    }
    if !(is_counter || is_gauge(first) && is_gauge(last)) {
        warn_of_counter(metric, notes);
    }
    let resets_first = is_counter && readings[1].1.detect_reset(first);
    // After a reset, the buckets of the first reading do not matter.
    let skipped = usize::from(resets_first);
    if readings[skipped..].iter().any(|(_, reading)| reading.is_custom() != last.is_custom()) {
        notes.warn_of_mixed_buckets(metric);
        return None;
    }
    let mut grown = Histogram::clone(last);
    if !resets_first && grown.subtract(first).ok()?.has_reconciled_bounds {
        notes.inform_of_reconciled_bounds("subtraction");
    }
    if is_counter {
        for pair in readings[skipped..].windows(2) {
            let (before, now) = (pair[0].1, pair[1].1);
            if now.detect_reset(before) && grown.add(before).ok()?.has_reconciled_bounds {
                notes.inform_of_reconciled_bounds("addition");
            }
        }
    }
    Some(grown)
}

fn warn_of_counter(metric: &str, notes: &Notes<'_>) {
    notes.warn(|| format!("this native histogram metric is not a gauge: {metric:?}"));
}

/// Evaluates `irate` and `idelta`: the change between the last two samples.
pub(super) fn instant(
    name: &str,
    window: &MixedWindow<'_>,
    (of_numbers, arguments): (RangeFunction, &[f64]),
    notes: &Notes<'_>,
) -> OutcomeResult {
    let is_rate = name == "irate";
    let all = timeline(window);
    let [.., (before_at, before), (at, last)] = all[..] else {
        if window.histograms.slots.is_empty() {
            return of_numbers(&window.numbers, arguments, notes).map(Into::into);
        }
        return Ok(Outcome::Nothing);
    };
    let (before, last) = match (before, last) {
        (Element::Histogram(before), Element::Histogram(last)) => (before, last),
        (Element::Number(_), Element::Number(_)) => {
            return of_numbers(&window.numbers, arguments, notes).map(Into::into);
        }
        (Element::Number(_), Element::Histogram(_))
        | (Element::Histogram(_), Element::Number(_)) => {
            notes.warn_of_mixed_samples(window.metric);
            return Ok(Outcome::Nothing);
        }
    };
    if at <= before_at {
        return Ok(Outcome::Nothing);
    }
    let is_merged = window.histograms.slots.last().is_some_and(TimedHistogram::is_merged);
    if is_merged {
        notes.inform(|| {
            "irate and idelta are less exact where several samples were merged into one slot"
                .to_owned()
        });
    }
    let is_gauge = |histogram: &Histogram| histogram.hint == ResetHint::Gauge;
    if is_rate && (is_gauge(before) || is_gauge(last)) {
        let metric = window.metric;
        notes.warn(|| format!("this native histogram metric is not a counter: {metric:?}"));
    }
    if !(is_rate || is_gauge(before) && is_gauge(last)) {
        warn_of_counter(window.metric, notes);
    }
    let mut change = Histogram::clone(last);
    // The hint of a merged slot compares with a reading that is unknown.
    let is_reset =
        last.detect_reset(before) || is_merged && without_reset_hint(last).detect_reset(before);
    if !is_rate || !is_reset {
        let Ok(difference) = change.subtract(before) else {
            notes.warn_of_mixed_buckets(window.metric);
            return Ok(Outcome::Nothing);
        };
        if difference.has_reconciled_bounds {
            notes.inform_of_reconciled_bounds("subtraction");
        }
    }
    change.hint = ResetHint::Gauge;
    let passed = seconds(at - before_at);
    let change = if is_rate { divided(&change, passed) } else { change };
    Ok(Outcome::Histogram(Arc::new(change)))
}
