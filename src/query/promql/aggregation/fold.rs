//! Aggregations that take one value after the other, series by series: sums and the like.
//!
//! Must never know: the store, how series were grouped.

use promql_parser::parser::token;

use super::groups::Group;
use crate::query::promql::value::{
    error::PromqlError,
    numbers::{Mean, Sum},
    series::{ABSENT, Series, is_present},
    steps::Steps,
};

/// One series for each group.
pub(super) fn folded(
    operator: token::TokenId,
    input: &[Series],
    groups: Vec<Group>,
    steps: &Steps,
) -> Result<Vec<Series>, PromqlError> {
    let fold = match operator {
        token::T_SUM => fold_group::<Sum>,
        token::T_AVG => fold_group::<Mean>,
        token::T_COUNT => fold_group::<Count>,
        token::T_GROUP => fold_group::<Exists>,
        token::T_MIN => fold_group::<Least>,
        token::T_MAX => fold_group::<Most>,
        token::T_STDVAR => fold_group::<Spread>,
        token::T_STDDEV => fold_group::<Deviation>,
        _ => {
            return Err(PromqlError::BadData("parse error: unknown aggregation".to_owned()));
        }
    };
    let aggregated = |group: Group| Series {
        values: fold(&group.members, input, steps),
        labels: group.labels,
        drop_metric: group.drop_metric,
    };
    Ok(groups.into_iter().map(aggregated).filter(Series::has_values).collect())
}

fn fold_group<F: Fold>(members: &[usize], input: &[Series], steps: &Steps) -> Vec<f64> {
    let mut states: Vec<Option<F>> = Vec::new();
    states.resize_with(steps.count, || None);
    for index in members {
        for (state, value) in states.iter_mut().zip(&input[*index].values) {
            if is_present(*value) {
                match state {
                    Some(state) => state.take(*value),
                    None => *state = Some(F::begin(*value)),
                }
            }
        }
    }
    states.into_iter().map(|state| state.map_or(ABSENT, Fold::end)).collect()
}

/// An aggregation that takes one value after the other.
trait Fold {
    fn begin(value: f64) -> Self;
    fn take(&mut self, value: f64);
    fn end(self) -> f64;
}

impl Fold for Sum {
    fn begin(value: f64) -> Self {
        let mut sum = Self::default();
        sum.add(value);
        sum
    }
    fn take(&mut self, value: f64) {
        self.add(value);
    }
    fn end(self) -> f64 {
        self.total()
    }
}

impl Fold for Mean {
    fn begin(value: f64) -> Self {
        let mut mean = Self::default();
        mean.add(value);
        mean
    }
    fn take(&mut self, value: f64) {
        self.add(value);
    }
    fn end(self) -> f64 {
        self.mean()
    }
}

struct Count(f64);

impl Fold for Count {
    fn begin(_: f64) -> Self {
        Self(1.0)
    }
    fn take(&mut self, _: f64) {
        self.0 += 1.0;
    }
    fn end(self) -> f64 {
        self.0
    }
}

struct Exists;

impl Fold for Exists {
    fn begin(_: f64) -> Self {
        Self
    }
    fn take(&mut self, _: f64) {}
    fn end(self) -> f64 {
        1.0
    }
}

struct Least(f64);

impl Fold for Least {
    fn begin(value: f64) -> Self {
        Self(value)
    }
    fn take(&mut self, value: f64) {
        if value < self.0 || self.0.is_nan() {
            self.0 = value;
        }
    }
    fn end(self) -> f64 {
        self.0
    }
}

struct Most(f64);

impl Fold for Most {
    fn begin(value: f64) -> Self {
        Self(value)
    }
    fn take(&mut self, value: f64) {
        if value > self.0 || self.0.is_nan() {
            self.0 = value;
        }
    }
    fn end(self) -> f64 {
        self.0
    }
}

/// Mean square distance from the mean. Without compensation, as Prometheus has it here.
struct Spread {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Fold for Spread {
    fn begin(value: f64) -> Self {
        let squares = if value.is_finite() { 0.0 } else { f64::NAN };
        Self { count: 1.0, mean: value, squares }
    }
    fn take(&mut self, value: f64) {
        self.count += 1.0;
        let delta = value - self.mean;
        self.mean += delta / self.count;
        self.squares += delta * (value - self.mean);
    }
    fn end(self) -> f64 {
        self.squares / self.count
    }
}

struct Deviation(Spread);

impl Fold for Deviation {
    fn begin(value: f64) -> Self {
        Self(Spread::begin(value))
    }
    fn take(&mut self, value: f64) {
        self.0.take(value);
    }
    fn end(self) -> f64 {
        self.0.end().sqrt()
    }
}
