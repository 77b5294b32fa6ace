//! Functions `*_over_time` of histograms, and `changes` and `resets`.
//!
//! Must never know: the store, the tree.

use std::sync::Arc;

use super::{Instead, MixedWindow, Outcome, OutcomeResult};
use crate::query::QueryError;
use crate::{
    model::{Histogram, Kind},
    query::promql::{
        functions::window::seconds,
        value::{
            annotations::Notes,
            histograms::{HistogramSum, are_equal, scaled},
            series::Element,
        },
    },
};

/// Returns the readings and the parts of merged slots, whose sum is the sum of the readings.
fn parts(name: &str, window: &MixedWindow<'_>) -> Result<Vec<Arc<Histogram>>, QueryError> {
    let histograms = window.histograms;
    if window.kind == Kind::Histogram {
        let instead = Instead::Others("rate or increase for a counter");
        window.check_single_readings(name, instead)?;
    }
    let mut parts: Vec<Arc<Histogram>> = Vec::new();
    for slot in histograms.slots {
        if slot.is_merged() {
            parts.push(Arc::new(scaled(&slot.total, histograms.part(slot))));
        } else {
            let is_inside = |at: i64| at > histograms.from && at <= histograms.to;
            let readings = slot.readings().filter(|(at, _)| is_inside(*at));
            parts.extend(readings.map(|(_, reading)| reading.clone()));
        }
    }
    Ok(parts)
}

/// Returns the sum or the average of the histograms; nothing for buckets that cannot be added.
pub(super) fn sum(name: &str, window: &MixedWindow<'_>, notes: &Notes<'_>) -> OutcomeResult {
    let is_average = name == "avg_over_time";
    let parts = parts(name, window)?;
    let Some((first, others)) = parts.split_first() else { return Ok(Outcome::Nothing) };
    let mut sum =
        if is_average { HistogramSum::for_average(first) } else { HistogramSum::new(first) };
    for other in others {
        if sum.add(other).is_err() {
            notes.warn_of_mixed_buckets(window.metric);
            return Ok(Outcome::Nothing);
        }
    }
    if sum.has_conflict() {
        notes.warn_of_reset_conflict("aggregation");
    }
    if sum.reconciled {
        notes.inform_of_reconciled_bounds("aggregation");
    }
    let total = if is_average { sum.average(window.histograms.count()) } else { sum.total() };
    Ok(Outcome::Histogram(Arc::new(total)))
}

pub(super) fn count(window: &MixedWindow<'_>) -> Outcome {
    let numbers = window.numbers.portions().map(|portion| f64::from(portion.count()));
    let count = numbers.sum::<f64>() + window.histograms.count();
    (count > 0.0).then_some(count).into()
}

/// Returns the value or the time of the first or the last sample.
pub(super) fn end(name: &str, window: &MixedWindow<'_>) -> Outcome {
    let all = timeline(window);
    let is_first = name.contains("first");
    let Some((at, element)) = (if is_first { all.first() } else { all.last() }) else {
        // The window is between the readings of a slot.
        let slot = window.histograms.slots.first().filter(|_| window.has_readings());
        return slot.map_or(Outcome::Nothing, |slot| {
            if name.starts_with("ts_of") {
                Outcome::Number(seconds(slot.first_at))
            } else {
                Outcome::Histogram(slot.first.clone())
            }
        });
    };
    match element {
        _ if name.starts_with("ts_of") => Outcome::Number(seconds(*at)),
        Element::Number(value) => Outcome::Number(*value),
        Element::Histogram(histogram) => Outcome::Histogram((*histogram).clone()),
    }
}

/// Returns all known samples in ascending order.
pub(super) fn timeline<'a>(window: &MixedWindow<'a>) -> Vec<(i64, Element<'a>)> {
    let numbers = window.numbers.readings().map(|(at, value)| (at, Element::Number(value)));
    let histograms = window.histograms.readings().into_iter();
    let mut all: Vec<_> =
        numbers.chain(histograms.map(|(at, found)| (at, Element::Histogram(found)))).collect();
    all.sort_by_key(|(at, _)| *at);
    all
}

/// Counts changes or resets from sample to sample. A sample of the other sort counts as both.
pub(super) fn count_steps(name: &str, window: &MixedWindow<'_>) -> OutcomeResult {
    window.check_single_readings(name, Instead::OfSlots("last_over_time"))?;
    let counts_resets = name == "resets";
    let all = timeline(window);
    if all.is_empty() {
        return Ok(Outcome::Nothing);
    }
    let steps = all.windows(2).filter(|pair| match (pair[0].1, pair[1].1) {
        (Element::Number(before), Element::Number(now)) if counts_resets => now < before,
        (Element::Number(before), Element::Number(now)) => {
            now != before && !(now.is_nan() && before.is_nan())
        }
        (Element::Histogram(before), Element::Histogram(now)) if counts_resets => {
            now.detect_reset(before)
        }
        (Element::Histogram(before), Element::Histogram(now)) => !are_equal(before, now),
        (Element::Number(_), Element::Histogram(_))
        | (Element::Histogram(_), Element::Number(_)) => true,
    });
    Ok(Outcome::Number(steps.count() as f64))
}
