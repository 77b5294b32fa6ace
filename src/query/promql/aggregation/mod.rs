//! Aggregations: many series of a group to one, or to some of them.
//!
//! Sums and the like go series by series; what needs a group's values side by side goes time by time.
//! Must never know: the store, how the input was evaluated.

mod count_values;
mod fold;
mod groups;
mod limit_ratio;
mod topk;

use promql_parser::parser::{AggregateExpr, token};

use crate::query::promql::{
    context::Context,
    value::{
        error::PromqlError,
        numbers::quantile,
        series::{ABSENT, Series, Value, is_present},
        steps::Steps,
    },
};
use groups::{Group, grouped};

/// What an aggregation makes of its input and its parameter, which is the call's first argument.
pub(crate) fn aggregate(
    aggregation: &AggregateExpr,
    parameter: Option<Value>,
    input: Vec<Series>,
    context: &Context<'_>,
) -> Result<Vec<Series>, PromqlError> {
    let (operator, modifier) = (aggregation.op.id(), aggregation.modifier.as_ref());
    let (steps, notes) = (context.steps, context.notes.at_argument(0));
    let groups = grouped(&input, modifier);
    context.bounds.check_time()?;
    match operator {
        token::T_COUNT_VALUES => {
            let name = if let Some(Value::Text(name)) = parameter { name } else { String::new() };
            count_values::count_values(&input, groups, &name, modifier, context)
        }
        token::T_QUANTILE => {
            let numbers = numbers(parameter)?;
            notes.check_quantiles(&numbers);
            Ok(by_time(&input, groups, steps, |at, values| quantile(numbers[at], values)))
        }
        token::T_TOPK | token::T_BOTTOMK | token::T_LIMITK => {
            topk::topk(operator, input, &groups, &numbers(parameter)?, steps)
        }
        token::T_LIMIT_RATIO => limit_ratio::limit_ratio(input, &numbers(parameter)?, &notes),
        _ => fold::folded(operator, &input, groups, steps),
    }
}

fn numbers(parameter: Option<Value>) -> Result<Vec<f64>, PromqlError> {
    match parameter {
        Some(Value::Scalar(numbers)) => Ok(numbers),
        Some(Value::Vector(_) | Value::Text(_)) | None => Err(PromqlError::BadData(
            "parse error: expected type scalar in aggregation parameter".to_owned(),
        )),
    }
}

/// One number for each group and time, from the values that are there.
fn by_time(
    input: &[Series],
    groups: Vec<Group>,
    steps: &Steps,
    compute: impl Fn(usize, &mut [f64]) -> f64,
) -> Vec<Series> {
    let mut there = Vec::new();
    let aggregated = |group: Group| {
        let values = (0..steps.count)
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
