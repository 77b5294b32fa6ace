//! Aggregations, which reduce the series of a group to one series or to a selection of its series.
//!
//! An aggregation consumes its input in parts, in the order of the series. Sums and similar
//! aggregations keep a state for each group, `topk` keeps the series of its result, and only
//! `count_values` keeps its input. The parts do not change the result. Must never know: the store,
//! how the input was evaluated.

mod count_values;
mod fold;
mod groups;
mod histograms;
mod limit_ratio;
mod partial;
mod quantile;
mod topk;

use crate::query::QueryError;
use crate::query::promql::{
    context::Context,
    syntax::{operator::Aggregation, tree::Grouping},
    value::{
        numbers::{Mean, Sum},
        series::{Series, Value},
    },
};
use count_values::CountValues;
use fold::{FoldedGroups, Maximum, MemberCount, Minimum, PopulationVariance, Presence};
use histograms::{OfNumbers, SumOfBoth};
use limit_ratio::LimitRatio;
pub(crate) use partial::{PartialAggregator, is_mergeable, partial_aggregator};
use quantile::Quantile;
use topk::PickedSeries;

/// An aggregation of an input that arrives in parts.
pub(crate) trait Aggregator {
    /// Adds a part of the input. The series of the parts are in order.
    fn add(&mut self, series: Vec<Series>) -> Result<(), QueryError>;

    /// Returns the approximate number of series of the result of the parts so far.
    fn series_count(&self) -> usize;

    /// Returns the result.
    fn finish(self: Box<Self>) -> Result<Vec<Series>, QueryError>;
}

/// Returns true when an aggregation needs little memory for its input.
pub(crate) fn reduces_parts(operation: Aggregation) -> bool {
    operation != Aggregation::CountValues
}

/// Creates an aggregation. The parameter is the first argument of the call.
pub(crate) fn aggregator<'a>(
    operation: Aggregation,
    grouping: Option<&'a Grouping>,
    parameter: Option<Value>,
    context: &'a Context<'a>,
) -> Result<Box<dyn Aggregator + 'a>, QueryError> {
    let input_notes = context.notes.at_argument(usize::from(parameter.is_some()));
    let inner: Box<dyn Aggregator + 'a> = match operation {
        // These aggregations distinguish histograms from numbers themselves.
        Aggregation::CountValues => {
            let name = if let Some(Value::Text(name)) = parameter { name } else { String::new() };
            return Ok(Box::new(CountValues::new(name, grouping, context)));
        }
        Aggregation::Limitk => {
            let numbers = numbers(parameter)?;
            return Ok(Box::new(PickedSeries::new(operation, &numbers, grouping, context)));
        }
        Aggregation::LimitRatio => {
            return Ok(Box::new(LimitRatio::new(numbers(parameter)?, context)));
        }
        Aggregation::Avg => {
            let mean = FoldedGroups::new(grouping, context, |_, mean: Mean| mean.mean());
            return Ok(Box::new(SumOfBoth::new(mean, true, input_notes, context)));
        }
        Aggregation::Sum => {
            let sum = FoldedGroups::new(grouping, context, |_, sum: Sum| sum.total());
            return Ok(Box::new(SumOfBoth::new(sum, false, input_notes, context)));
        }
        Aggregation::Quantile => Box::new(Quantile::new(numbers(parameter)?, grouping, context)),
        Aggregation::Topk | Aggregation::Bottomk => {
            let numbers = numbers(parameter)?;
            Box::new(PickedSeries::new(operation, &numbers, grouping, context))
        }
        Aggregation::Count => {
            Box::new(FoldedGroups::new(grouping, context, |_, MemberCount(count)| count))
        }
        Aggregation::Group => Box::new(FoldedGroups::new(grouping, context, |_, Presence| 1.0)),
        Aggregation::Max => {
            Box::new(FoldedGroups::new(grouping, context, |_, Maximum(value)| value))
        }
        Aggregation::Min => {
            Box::new(FoldedGroups::new(grouping, context, |_, Minimum(value)| value))
        }
        Aggregation::Stddev => {
            let deviation = |_, squares: PopulationVariance| squares.variance().sqrt();
            Box::new(FoldedGroups::new(grouping, context, deviation))
        }
        Aggregation::Stdvar => {
            let variance = |_, squares: PopulationVariance| squares.variance();
            Box::new(FoldedGroups::new(grouping, context, variance))
        }
    };
    Ok(Box::new(OfNumbers::new(operation, inner, input_notes)))
}

fn numbers(parameter: Option<Value>) -> Result<Vec<f64>, QueryError> {
    match parameter {
        Some(Value::Scalar(numbers)) => Ok(numbers),
        Some(Value::Vector(_) | Value::Text(_)) | None => Err(QueryError::Invalid(
            "parse error: expected type scalar in aggregation parameter".to_owned(),
        )),
    }
}
