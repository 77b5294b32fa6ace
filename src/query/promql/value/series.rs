//! Values on their way through an expression: for each series one number for each time.
//!
//! Must never know: the store, the tree. A number that is not there is [`ABSENT`], because NaN is
//! a value as good as any.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::{error::PromqlError, labels::Labels};

/// No value at this time. A NaN that no calculation yields, as in Prometheus' stale markers.
pub(crate) const ABSENT: f64 = f64::from_bits(ABSENT_BITS);
const ABSENT_BITS: u64 = 0x7ff0_0000_0000_0002;

/// Whether there is a value.
pub(crate) fn is_present(value: f64) -> bool {
    value.to_bits() != ABSENT_BITS
}

/// A series with its values at the steps.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    /// Which series.
    pub(crate) labels: Labels,
    /// Whether the metric's name no longer fits and goes, at the end if name removal is delayed.
    /// Until then labels can be made of it, and it tells series apart.
    pub(crate) drop_metric: bool,
    /// One for each time, [`ABSENT`] where there is none.
    pub(crate) values: Vec<f64>,
}

impl Series {
    /// Numbers that belong to no series.
    pub(crate) fn unlabelled(values: Vec<f64>) -> Self {
        Self { labels: Labels::default(), drop_metric: false, values }
    }

    /// Whether there is any value.
    pub(crate) fn has_values(&self) -> bool {
        self.values.iter().any(|value| is_present(*value))
    }
}

/// What an expression comes to.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    /// One for each time.
    Scalar(Vec<f64>),
    /// An instant vector for each time.
    Vector(Vec<Series>),
    /// A literal.
    Text(String),
}

impl Value {
    /// With its sign changed.
    pub(crate) fn negated(self) -> Self {
        match self {
            Self::Scalar(mut values) => {
                for value in &mut values {
                    *value = -*value;
                }
                Self::Scalar(values)
            }
            Self::Vector(mut series) => {
                for one in &mut series {
                    one.drop_metric = true;
                    let present = one.values.iter_mut().filter(|value| is_present(**value));
                    present.for_each(|value| *value = -*value);
                }
                Self::Vector(series)
            }
            Self::Text(text) => Self::Text(text),
        }
    }

    /// What it is at one time at several times.
    pub(crate) fn repeated(self, count: usize) -> Self {
        let repeat = |values: Vec<f64>| vec![values.first().copied().unwrap_or(ABSENT); count];
        match self {
            Self::Scalar(values) => Self::Scalar(repeat(values)),
            Self::Vector(mut series) => {
                for one in &mut series {
                    one.values = repeat(std::mem::take(&mut one.values));
                }
                Self::Vector(series)
            }
            Self::Text(text) => Self::Text(text),
        }
    }

    /// Memory that it takes, about. Labels are shared.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Scalar(values) => size_of_val(&values[..]),
            Self::Vector(series) => {
                series.iter().map(|one| size_of::<Series>() + size_of_val(&one.values[..])).sum()
            }
            Self::Text(text) => text.len(),
        }
    }
}

/// Drops the metrics' names that no longer fit; what is then the same must not meet.
pub(crate) fn without_names(mut series: Vec<Series>) -> Result<Vec<Series>, PromqlError> {
    if !series.iter().any(|one| one.drop_metric) {
        return Ok(series);
    }
    for one in series.iter_mut().filter(|one| one.drop_metric) {
        one.labels = one.labels.without_metric();
        one.drop_metric = false;
    }
    join_same(series)
}

/// Joins series with the same labels; where two have a value at one time there is no answer.
pub(crate) fn join_same(series: Vec<Series>) -> Result<Vec<Series>, PromqlError> {
    let mut places: HashMap<Labels, usize, RandomState> = HashMap::default();
    places.reserve(series.len());
    let mut out: Vec<Series> = Vec::with_capacity(series.len());
    for one in series {
        if let Some(place) = places.get(&one.labels) {
            join(&mut out[*place].values, &one.values)?;
        } else {
            places.insert(one.labels.clone(), out.len());
            out.push(one);
        }
    }
    Ok(out)
}

fn join(own: &mut [f64], other: &[f64]) -> Result<(), PromqlError> {
    for (own, other) in own.iter_mut().zip(other).filter(|(_, other)| is_present(**other)) {
        if is_present(*own) {
            return Err(PromqlError::Execution(
                "vector cannot contain metrics with the same labelset".to_owned(),
            ));
        }
        *own = *other;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(values: &[f64]) -> Series {
        Series { labels: Labels::default(), drop_metric: false, values: values.to_vec() }
    }

    #[test]
    fn same_labels_are_joined_unless_they_meet() {
        let joined = join_same(vec![series(&[1.0, ABSENT]), series(&[ABSENT, 2.0])]).unwrap();
        assert_eq!(joined.len(), 1);
        assert_eq!(joined[0].values, [1.0, 2.0]);
        assert!(join_same(vec![series(&[1.0, ABSENT]), series(&[3.0, 2.0])]).is_err());
        assert!(!series(&[ABSENT]).has_values() && series(&[f64::NAN]).has_values());
    }
}
