//! Intermediate values of an expression: one number or native histogram per series and time.
//!
//! Must never know: the store, the tree. [`ABSENT`] marks a missing number, because NaN is a valid
//! value.

use std::{collections::HashMap, sync::Arc};

use foldhash::fast::RandomState;

use super::{
    histograms::{HistogramColumn, scaled},
    steps::Steps,
};
use crate::{
    model::Histogram,
    query::{Labels, QueryError},
};

/// The mark for a missing value: a NaN that no calculation produces, like Prometheus' stale marker.
pub(crate) const ABSENT: f64 = f64::from_bits(ABSENT_BITS);
const ABSENT_BITS: u64 = 0x7ff0_0000_0000_0002;

/// Returns true when a value is not missing.
pub(crate) fn is_present(value: f64) -> bool {
    value.to_bits() != ABSENT_BITS
}

/// A series with its values at the steps.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    /// The labels of the series.
    pub(crate) labels: Labels,
    /// True when the metric's name does not apply to the values. With delayed name removal, the
    /// name is dropped at the end; until then, the name identifies the series and is available as a
    /// label.
    pub(crate) drop_metric: bool,
    /// One number per time, or [`ABSENT`].
    pub(crate) values: Vec<f64>,
    /// The native histograms, at times without a number.
    pub(crate) histograms: HistogramColumn,
}

impl Series {
    /// Creates a series of numbers.
    pub(crate) fn new(labels: Labels, drop_metric: bool, values: Vec<f64>) -> Self {
        Self { labels, drop_metric, values, histograms: HistogramColumn::NONE }
    }

    /// Creates a series without labels.
    pub(crate) fn unlabelled(values: Vec<f64>) -> Self {
        Self::new(Labels::default(), false, values)
    }

    /// Returns the approximate memory of a number of series, without their labels, in bytes.
    pub(crate) fn bytes_of(count: usize, steps: &Steps) -> usize {
        count * (size_of::<Self>() + steps.count * size_of::<f64>())
    }

    /// Returns true when any value is present.
    pub(crate) fn has_values(&self) -> bool {
        self.values.iter().any(|value| is_present(*value)) || !self.histograms.is_empty()
    }

    /// Returns true when the series has a number or a histogram at a time.
    pub(crate) fn is_at(&self, step: usize) -> bool {
        is_present(self.values[step]) || self.histograms.is_at(step)
    }

    /// Returns the number or the histogram at a time.
    pub(crate) fn element(&self, step: usize) -> Option<Element<'_>> {
        let value = self.values[step];
        if is_present(value) {
            return Some(Element::Number(value));
        }
        self.histograms.get(step).map(Element::Histogram)
    }

    /// Removes the value at a time.
    pub(crate) fn remove(&mut self, step: usize) {
        self.values[step] = ABSENT;
        self.histograms.remove(step);
    }

    /// Takes over the value of another series at a time.
    pub(crate) fn copy(&mut self, step: usize, other: &Self) {
        self.values[step] = other.values[step];
        self.histograms.remove(step);
        if let Some(histogram) = other.histograms.get(step) {
            self.histograms.set(step, histogram.clone(), self.values.len());
        }
    }
}

/// The value of a series at a time.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Element<'a> {
    /// A number.
    Number(f64),
    /// A native histogram.
    Histogram(&'a Arc<Histogram>),
}

/// The value of an expression.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    /// One number per time.
    Scalar(Vec<f64>),
    /// An instant vector per time.
    Vector(Vec<Series>),
    /// A string literal.
    Text(String),
}

impl Value {
    /// Returns the value with its sign changed.
    pub(crate) fn negated(self) -> Self {
        match self {
            Self::Scalar(mut values) => {
                for value in &mut values {
                    *value = -*value;
                }
                Self::Scalar(values)
            }
            Self::Vector(mut series) => {
                for entry in &mut series {
                    entry.drop_metric = true;
                    let present = entry.values.iter_mut().filter(|value| is_present(**value));
                    present.for_each(|value| *value = -*value);
                    entry.histograms.map(|_, found| Some(Arc::new(scaled(found, -1.0))));
                }
                Self::Vector(series)
            }
            Self::Text(text) => Self::Text(text),
        }
    }

    /// Returns the approximate memory of copies of the native histograms in bytes.
    pub(crate) fn copied_histograms_bytes(&self) -> usize {
        let Self::Vector(series) = self else { return 0 };
        series.iter().map(|entry| entry.histograms.copied_bytes()).sum()
    }

    /// Repeats the value of one time for several times.
    pub(crate) fn repeated(self, count: usize) -> Self {
        let repeat = |values: Vec<f64>| vec![values.first().copied().unwrap_or(ABSENT); count];
        match self {
            Self::Scalar(values) => Self::Scalar(repeat(values)),
            Self::Vector(mut series) => {
                for entry in &mut series {
                    entry.values = repeat(std::mem::take(&mut entry.values));
                    entry.histograms = std::mem::take(&mut entry.histograms).repeated(count);
                }
                Self::Vector(series)
            }
            Self::Text(text) => Self::Text(text),
        }
    }

    /// Returns the approximate memory in bytes. Labels are shared.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Scalar(values) => size_of_val(&values[..]),
            Self::Vector(series) => series
                .iter()
                .map(|entry| {
                    size_of::<Series>() + size_of_val(&entry.values[..]) + entry.histograms.bytes()
                })
                .sum(),
            Self::Text(text) => text.len(),
        }
    }
}

/// Drops metric names that do not apply, and joins series that are then equal.
pub(crate) fn without_names(mut series: Vec<Series>) -> Result<Vec<Series>, QueryError> {
    if !series.iter().any(|entry| entry.drop_metric) {
        return Ok(series);
    }
    for entry in series.iter_mut().filter(|entry| entry.drop_metric) {
        entry.labels = entry.labels.without_metric();
        entry.drop_metric = false;
    }
    join_same(series)
}

/// Joins series with equal labels. Fails when two of these series have a value at the same time.
pub(crate) fn join_same(series: Vec<Series>) -> Result<Vec<Series>, QueryError> {
    // Series of one metric stay in the order of their labels, so that all labels differ.
    if series.is_sorted_by(|entry, next| entry.labels < next.labels) {
        return Ok(series);
    }
    let mut positions: HashMap<Labels, usize, RandomState> = HashMap::default();
    positions.reserve(series.len());
    let mut out: Vec<Series> = Vec::with_capacity(series.len());
    for entry in series {
        if let Some(position) = positions.get(&entry.labels) {
            join(&mut out[*position], &entry)?;
        } else {
            positions.insert(entry.labels.clone(), out.len());
            out.push(entry);
        }
    }
    Ok(out)
}

fn join(joined: &mut Series, other: &Series) -> Result<(), QueryError> {
    for step in (0..joined.values.len()).filter(|step| other.is_at(*step)) {
        if joined.is_at(step) {
            return Err(QueryError::Execution(
                "vector cannot contain metrics with the same labelset".to_owned(),
            ));
        }
        joined.copy(step, other);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(values: &[f64]) -> Series {
        Series::unlabelled(values.to_vec())
    }

    #[test]
    fn series_with_equal_labels_are_joined_unless_their_times_overlap() {
        let joined = join_same(vec![series(&[1.0, ABSENT]), series(&[ABSENT, 2.0])]).unwrap();
        assert_eq!(joined.len(), 1);
        assert_eq!(joined[0].values, [1.0, 2.0]);
        assert!(join_same(vec![series(&[1.0, ABSENT]), series(&[3.0, 2.0])]).is_err());
        // Equal labels that are not neighbours are joined too.
        let named = |name: &str, value| Series {
            labels: Labels::default().with("host", name),
            ..series(&[value])
        };
        let ascending = vec![named("a", 1.0), named("b", 2.0)];
        assert_eq!(join_same(ascending).unwrap().len(), 2);
        let apart = vec![named("b", 1.0), named("a", 2.0), named("b", ABSENT)];
        assert_eq!(join_same(apart).unwrap().len(), 2);
        assert!(!series(&[ABSENT]).has_values() && series(&[f64::NAN]).has_values());
    }
}
