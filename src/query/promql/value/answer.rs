//! The answers of PromQL.
//!
//! Must never know: HTTP, how values are computed.

use std::{ops::Range, sync::Arc};

use super::{series::is_present, steps::Steps};
use crate::{model::Histogram, query::Labels};

/// The value of an expression. A range query results in a matrix.
#[derive(Debug, Clone, PartialEq)]
pub enum PromqlValue {
    /// The time in Unix milliseconds, and a number.
    Scalar(i64, f64),
    /// The time in Unix milliseconds, and a text.
    String(i64, String),
    /// One number or histogram per series, in order of labels unless the expression sorts.
    Vector(Vec<VectorSample>),
    /// Several numbers or histograms per series, in order of labels.
    Matrix(Vec<MatrixSeries>),
}

/// The value of a series at one time.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorSample {
    /// The labels of the series.
    pub labels: Labels,
    /// The evaluation time, Unix milliseconds.
    pub at: i64,
    /// The number; NaN for a native histogram.
    pub value: f64,
    /// The native histogram, in place of a number.
    pub histogram: Option<Arc<Histogram>>,
}

/// The values of a series over time.
#[derive(Debug, Clone, PartialEq)]
pub struct MatrixSeries {
    /// The labels of the series.
    pub labels: Labels,
    /// The numbers.
    pub points: Points,
    /// The native histograms with their times in Unix milliseconds, in ascending order.
    pub histograms: Vec<(i64, Arc<Histogram>)>,
}

/// Values over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Points(PointStorage);

#[derive(Debug, Clone, PartialEq)]
enum PointStorage {
    /// Times in Unix milliseconds and values, in ascending order.
    Listed(Vec<(i64, f64)>),
    /// The time of the first value, the step, and one value per step, which may be
    /// [`ABSENT`](super::series::ABSENT).
    Stepped(i64, i64, Vec<f64>),
}

impl Points {
    /// Creates points from times in Unix milliseconds and values, in ascending order.
    pub fn from_list(points: Vec<(i64, f64)>) -> Self {
        Self(PointStorage::Listed(points))
    }

    /// Creates points from one value per step; absent values are skipped.
    pub(crate) fn from_steps(steps: &Steps, values: Vec<f64>) -> Self {
        Self(PointStorage::Stepped(steps.start, steps.step_ms, values))
    }

    /// Returns the number of points, including absent points.
    pub fn slot_count(&self) -> usize {
        match &self.0 {
            PointStorage::Listed(points) => points.len(),
            PointStorage::Stepped(_, _, values) => values.len(),
        }
    }

    /// Calls `visit` with the points in a range of indexes: index, Unix milliseconds and value.
    pub fn for_each(&self, indexes: Range<usize>, mut visit: impl FnMut(usize, i64, f64)) {
        let indexes = indexes.start..indexes.end.min(self.slot_count());
        match &self.0 {
            PointStorage::Listed(points) => {
                for (index, (at, value)) in indexes.clone().zip(&points[indexes]) {
                    visit(index, *at, *value);
                }
            }
            PointStorage::Stepped(start, step_ms, values) => {
                for (index, value) in indexes.clone().zip(&values[indexes]) {
                    if is_present(*value) {
                        visit(index, time_of(*start, *step_ms, index), *value);
                    }
                }
            }
        }
    }

    /// Returns the times in Unix milliseconds and the values, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = (i64, f64)> {
        let (listed, stepped) = match &self.0 {
            PointStorage::Listed(points) => (&points[..], None),
            PointStorage::Stepped(start, step_ms, values) => {
                (&[][..], Some((start, step_ms, values)))
            }
        };
        let stepped = stepped.into_iter().flat_map(|(start, step_ms, values)| {
            let points = values.iter().enumerate().filter(|(_, value)| is_present(**value));
            points.map(|(index, value)| (time_of(*start, *step_ms, index), *value))
        });
        listed.iter().copied().chain(stepped)
    }

    /// Returns the memory in bytes.
    pub fn bytes(&self) -> usize {
        match &self.0 {
            PointStorage::Listed(points) => size_of_val(&points[..]),
            PointStorage::Stepped(_, _, values) => size_of_val(&values[..]),
        }
    }
}

/// Returns the time after a number of steps.
fn time_of(start: i64, step_ms: i64, steps: usize) -> i64 {
    start.saturating_add(step_ms.saturating_mul(steps as i64))
}

/// An answer with its annotations.
#[derive(Debug, Clone, PartialEq)]
pub struct PromqlAnswer {
    /// The value.
    pub value: PromqlValue,
    /// Possible errors in the answer, without duplicates.
    pub warnings: Vec<String>,
    /// Possible errors in the expression, without duplicates.
    pub infos: Vec<String>,
}
