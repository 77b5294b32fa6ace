//! Aggregations, which reduce the series of a group to one series or to a selection of its series.
//!
//! Aggregations such as sums process series after series; aggregations that compare the values of a
//! group process time after time. Must never know: the store, how the input was evaluated.

mod count_values;
mod fold;
mod groups;
mod limit_ratio;
mod topk;

use crate::query::QueryError;
use crate::query::promql::{
    context::Context,
    syntax::{operator::Aggregation, tree::Grouping},
    value::{
        numbers::{Mean, Sum, quantile},
        series::{ABSENT, Series, Value, is_present},
        steps::Steps,
    },
};
use fold::{
    Maximum, MemberCount, Minimum, PopulationVariance, Presence, StandardDeviation, fold_groups,
};
use groups::{SeriesGroup, group_series};

/// Evaluates an aggregation. The parameter is the first argument of the call.
pub(crate) fn aggregate(
    operation: Aggregation,
    grouping: Option<&Grouping>,
    parameter: Option<Value>,
    input: Vec<Series>,
    context: &Context<'_>,
) -> Result<Vec<Series>, QueryError> {
    let (steps, notes) = (context.steps, context.notes.at_argument(0));
    let groups = group_series(&input, grouping);
    context.bounds.check_time()?;
    Ok(match operation {
        Aggregation::CountValues => {
            let name = if let Some(Value::Text(name)) = parameter { name } else { String::new() };
            count_values::count_values(&input, groups, &name, grouping, context)?
        }
        Aggregation::Quantile => {
            let numbers = numbers(parameter)?;
            notes.check_quantiles(&numbers);
            aggregate_each_time(&input, groups, steps, |step, values| {
                quantile(numbers[step], values)
            })
        }
        Aggregation::Topk | Aggregation::Bottomk | Aggregation::Limitk => {
            topk::topk(operation, input, &groups, &numbers(parameter)?, steps)?
        }
        Aggregation::LimitRatio => limit_ratio::limit_ratio(input, &numbers(parameter)?, &notes)?,
        Aggregation::Avg => fold_groups::<Mean>(&input, groups, steps),
        Aggregation::Count => fold_groups::<MemberCount>(&input, groups, steps),
        Aggregation::Group => fold_groups::<Presence>(&input, groups, steps),
        Aggregation::Max => fold_groups::<Maximum>(&input, groups, steps),
        Aggregation::Min => fold_groups::<Minimum>(&input, groups, steps),
        Aggregation::Stddev => fold_groups::<StandardDeviation>(&input, groups, steps),
        Aggregation::Stdvar => fold_groups::<PopulationVariance>(&input, groups, steps),
        Aggregation::Sum => fold_groups::<Sum>(&input, groups, steps),
    })
}

fn numbers(parameter: Option<Value>) -> Result<Vec<f64>, QueryError> {
    match parameter {
        Some(Value::Scalar(numbers)) => Ok(numbers),
        Some(Value::Vector(_) | Value::Text(_)) | None => Err(QueryError::Invalid(
            "parse error: expected type scalar in aggregation parameter".to_owned(),
        )),
    }
}

/// Calculates one number per group and time from the values that are present.
fn aggregate_each_time(
    input: &[Series],
    groups: Vec<SeriesGroup>,
    steps: &Steps,
    compute: impl Fn(usize, &mut [f64]) -> f64,
) -> Vec<Series> {
    let mut present = Vec::new();
    let aggregated = |group: SeriesGroup| {
        let values = (0..steps.count)
            .map(|step| {
                let values_at_time = group.members.iter().map(|index| input[*index].values[step]);
                present.clear();
                present.extend(values_at_time.filter(|value| is_present(*value)));
                if present.is_empty() { ABSENT } else { compute(step, &mut present) }
            })
            .collect();
        Series { labels: group.labels, drop_metric: group.drop_metric, values }
    };
    groups.into_iter().map(aggregated).collect()
}
