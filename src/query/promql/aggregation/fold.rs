//! Aggregations: many series of a group to one, or to some of them.
//!
//! Must never know: the store. Sums and the like go series by series; what needs a group's values
//! side by side goes time by time.

use std::collections::HashMap;

use promql_parser::parser::{AggregateExpr, LabelModifier, token};

use super::topk;
use crate::query::promql::{
    Labels, PromqlError,
    evaluate::expression::Evaluator,
    value::{
        numbers::{Mean, Sum, quantile},
        series::{ABSENT, Series, is_present},
        steps::Grid,
    },
};

/// Series that are aggregated together, by index.
pub(crate) struct Group {
    pub(crate) labels: Labels,
    pub(crate) drop_metric: bool,
    pub(crate) members: Vec<usize>,
}

impl Evaluator<'_> {
    /// What an aggregation comes to.
    pub(crate) fn aggregate(
        &self,
        aggregate: &AggregateExpr,
        grid: &Grid,
    ) -> Result<Vec<Series>, PromqlError> {
        let operator = aggregate.op.id();
        let parameter = aggregate.param.as_deref();
        let numbers = match operator {
            token::T_TOPK
            | token::T_BOTTOMK
            | token::T_QUANTILE
            | token::T_LIMITK
            | token::T_LIMIT_RATIO => {
                parameter.map(|parameter| self.scalar(parameter, grid)).transpose()?
            }
            _ => None,
        };
        let numbers = numbers.unwrap_or_default();
        let input = self.vector(&aggregate.expr, grid)?;
        let groups = grouped(&input, aggregate.modifier.as_ref());
        self.check_time()?;
        match operator {
            token::T_COUNT_VALUES => {
                self.count_values(&input, groups, parameter, aggregate.modifier.as_ref(), grid)
            }
            token::T_QUANTILE => {
                self.check_quantiles(&numbers, self.positions.of_parameter(aggregate));
                Ok(by_time(&input, groups, grid, |at, values| quantile(numbers[at], values)))
            }
            token::T_TOPK | token::T_BOTTOMK | token::T_LIMITK => {
                topk::counted(operator, &input, &groups, &numbers, grid)
            }
            token::T_LIMIT_RATIO => {
                let mut notes = self.notes.borrow_mut();
                notes.at(self.positions.of_parameter(aggregate));
                let picked = topk::by_ratio(input, &numbers, &mut notes);
                notes.at(None);
                picked
            }
            _ => folded(operator, &input, groups, grid),
        }
    }
}

fn grouped(input: &[Series], modifier: Option<&LabelModifier>) -> Vec<Group> {
    let mut places: HashMap<Labels, usize> = HashMap::new();
    let mut groups: Vec<Group> = Vec::new();
    for (index, series) in input.iter().enumerate() {
        let labels = match modifier {
            Some(LabelModifier::Include(names)) => series.labels.only(&names.labels),
            Some(LabelModifier::Exclude(names)) => series.labels.without(&names.labels),
            None => Labels::default(),
        };
        let place = *places.entry(labels).or_insert_with_key(|labels| {
            let labels = labels.clone();
            groups.push(Group { labels, drop_metric: false, members: Vec::new() });
            groups.len() - 1
        });
        groups[place].members.push(index);
        groups[place].drop_metric |= series.drop_metric;
    }
    groups
}

/// One number for each group and time, from the values that are there.
fn by_time(
    input: &[Series],
    groups: Vec<Group>,
    grid: &Grid,
    compute: impl Fn(usize, &mut [f64]) -> f64,
) -> Vec<Series> {
    let mut there = Vec::new();
    let aggregated = |group: Group| {
        let values = (0..grid.count)
            .map(|at| {
                let of_time = group.members.iter().map(|index| input[*index].values[at]);
                there.clear();
                there.extend(of_time.filter(|value| is_present(*value)));
                if there.is_empty() { ABSENT } else { compute(at, &mut there) }
            })
            .collect();
        Series { labels: group.labels, drop_metric: group.drop_metric, values }
    };
    groups.into_iter().map(aggregated).collect()
}

/// Aggregations that take one value after the other.
fn folded(
    operator: token::TokenId,
    input: &[Series],
    groups: Vec<Group>,
    grid: &Grid,
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
        values: fold(&group.members, input, grid),
        labels: group.labels,
        drop_metric: group.drop_metric,
    };
    Ok(groups.into_iter().map(aggregated).filter(Series::has_values).collect())
}

fn fold_group<F: Fold>(members: &[usize], input: &[Series], grid: &Grid) -> Vec<f64> {
    let mut states: Vec<Option<F>> = Vec::new();
    states.resize_with(grid.count, || None);
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
