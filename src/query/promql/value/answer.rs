//! What PromQL answers.
//!
//! Must never know: HTTP, how anything is computed.

use std::ops::Range;

use super::{labels::Labels, series::is_present, steps::Steps};

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
    /// Its values.
    pub points: Points,
}

/// Values over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Points(Times);

#[derive(Debug, Clone, PartialEq)]
enum Times {
    /// Unix milliseconds and value, ascending.
    Listed(Vec<(i64, f64)>),
    /// The time of the first value, how far it is to the next, and the values, as they were
    /// calculated: some may not be there.
    Stepped(i64, i64, Vec<f64>),
}

impl Points {
    /// Values at any times, Unix milliseconds, ascending.
    pub fn listed(points: Vec<(i64, f64)>) -> Self {
        Self(Times::Listed(points))
    }

    /// One value for each step, where there is one.
    pub(crate) fn stepped(steps: &Steps, values: Vec<f64>) -> Self {
        Self(Times::Stepped(steps.start, steps.step_ms, values))
    }

    /// How many there may be.
    pub fn places(&self) -> usize {
        match &self.0 {
            Times::Listed(points) => points.len(),
            Times::Stepped(_, _, values) => values.len(),
        }
    }

    /// Hands out the values at some places, each with its place and Unix milliseconds, ascending.
    pub fn for_each(&self, places: Range<usize>, mut visit: impl FnMut(usize, i64, f64)) {
        let places = places.start..places.end.min(self.places());
        match &self.0 {
            Times::Listed(points) => {
                for (place, (at, value)) in places.clone().zip(&points[places]) {
                    visit(place, *at, *value);
                }
            }
            Times::Stepped(start, step_ms, values) => {
                for (place, value) in places.clone().zip(&values[places]) {
                    if is_present(*value) {
                        visit(place, time_of(*start, *step_ms, place), *value);
                    }
                }
            }
        }
    }

    /// Unix milliseconds and value, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (i64, f64)> {
        let (listed, stepped) = match &self.0 {
            Times::Listed(points) => (&points[..], None),
            Times::Stepped(start, step_ms, values) => (&[][..], Some((start, step_ms, values))),
        };
        let stepped = stepped.into_iter().flat_map(|(start, step_ms, values)| {
            let points = values.iter().enumerate().filter(|(_, value)| is_present(**value));
            points.map(|(place, value)| (time_of(*start, *step_ms, place), *value))
        });
        listed.iter().copied().chain(stepped)
    }

    /// Bytes that they take.
    pub fn bytes(&self) -> usize {
        match &self.0 {
            Times::Listed(points) => size_of_val(&points[..]),
            Times::Stepped(_, _, values) => size_of_val(&values[..]),
        }
    }
}

/// When so many steps are over.
fn time_of(start: i64, step_ms: i64, steps: usize) -> i64 {
    start.saturating_add(step_ms.saturating_mul(steps as i64))
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
