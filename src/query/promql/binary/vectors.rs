//! Operators between two vectors: set operators, arithmetic and comparisons on matching series.
//!
//! Must never know: the store, the labels of the matching.

use std::collections::HashMap;

use super::{
    fill::{any_present, fill},
    histograms::Operating,
    matching::{MatchGroup, Matching, groups},
    operators::Operation,
};
use crate::query::promql::{
    context::Context,
    syntax::tree::{Binary, ManySide},
    value::{
        series::{ABSENT, Element, Series, is_present, join_same},
        steps::Steps,
    },
};
use crate::query::{Labels, QueryError};

/// Evaluates an operator between two vectors.
pub(super) fn operate(
    mut left: Vec<Series>,
    mut right: Vec<Series>,
    operating: &Operating<'_>,
    binary: &Binary,
    context: &Context<'_>,
) -> Result<Vec<Series>, QueryError> {
    let (matching, steps) = (Matching::new(binary), context.steps);
    if binary.matching.has_fill() {
        fill(&mut left, &mut right, &binary.matching, &matching, steps);
    }
    match operating.operation {
        Operation::And => Ok(filter_matches(left, &right, &matching, steps, true)),
        Operation::Unless => Ok(filter_matches(left, &right, &matching, steps, false)),
        Operation::Or => {
            let missing = filter_matches(right, &left, &matching, steps, false);
            join_same(left.into_iter().chain(missing).collect())
        }
        Operation::Arithmetic(_) | Operation::Comparison(_) | Operation::Trim(_) => {
            let swapped = matching.many == ManySide::Right;
            let (many, one) = if swapped { (right, left) } else { (left, right) };
            operate_on_matches(&many, &one, operating, &matching, context)
        }
    }
}

/// Evaluates arithmetic and comparisons. `many` is the left side, except for `group_right`.
fn operate_on_matches(
    many: &[Series],
    one: &[Series],
    operating: &Operating<'_>,
    matching: &Matching<'_>,
    context: &Context<'_>,
) -> Result<Vec<Series>, QueryError> {
    let steps = context.steps;
    let many_present = any_present(many.iter(), steps);
    let mut results = Results::default();
    for group in groups(many, one, matching) {
        let partners = partners(&group, one, &many_present, matching)?;
        let may_repeat = matching.many != ManySide::Neither || group.left.len() < 2;
        // Times at which a series of the "many" side already has a match.
        let mut has_match = vec![false; if may_repeat { 0 } else { steps.count }];
        for left in group.left.iter().map(|index| &many[*index]) {
            context.bounds.check_time()?;
            for partner in distinct_partners(left, &partners) {
                let right = &one[partner as usize];
                record_matches(&mut has_match, left, right)?;
                let operation = operating.operation;
                let values = combined_values(left, right, operation, matching);
                let labels = matching.result_labels(&left.labels, &right.labels, operation);
                let drop_metric = left.drop_metric || matching.return_bool;
                let mut result = Series::new(labels, drop_metric, values);
                combine_histograms(left, right, (operating, context), matching, &mut result)?;
                results.add(result, matching.many)?;
                context.bounds.check_points(results.series.len(), steps.count)?;
            }
        }
    }
    results.series.retain(Series::has_values);
    Ok(results.series)
}

/// Keeps values at times when the other side has, or lacks, a series with the same signature.
fn filter_matches(
    mut side: Vec<Series>,
    other: &[Series],
    matching: &Matching<'_>,
    steps: &Steps,
    keeps_matched: bool,
) -> Vec<Series> {
    for group in groups(&side, other, matching) {
        let mut is_matched = vec![false; steps.count];
        for index in &group.right {
            for (is_matched, value) in is_matched.iter_mut().zip(&other[*index].values) {
                *is_matched |= is_present(*value);
            }
            other[*index].histograms.iter().for_each(|(step, _)| is_matched[step] = true);
        }
        for index in &group.left {
            for (step, is_matched) in is_matched.iter().enumerate() {
                if *is_matched != keeps_matched {
                    side[*index].remove(step);
                }
            }
        }
    }
    side.retain(Series::has_values);
    side
}

/// Records matches; without grouping, a series may match one other series at a time.
fn record_matches(has_match: &mut [bool], left: &Series, right: &Series) -> Result<(), QueryError> {
    for (step, has_match) in has_match.iter_mut().enumerate() {
        if left.is_at(step) && right.is_at(step) && std::mem::replace(has_match, true) {
            return Err(execution_error(
                "multiple matches for labels: many-to-one matching must be explicit \
                 (group_left/group_right)",
            ));
        }
    }
    Ok(())
}

fn combined_values(
    many: &Series,
    one: &Series,
    operation: Operation,
    matching: &Matching<'_>,
) -> Vec<f64> {
    let pairs = many.values.iter().zip(&one.values);
    pairs
        .map(|(many, one)| {
            if !is_present(*many) || !is_present(*one) {
                return ABSENT;
            }
            let swapped = matching.many == ManySide::Right;
            let (left, right) = if swapped { (*one, *many) } else { (*many, *one) };
            // A comparison keeps the value of the left side, regardless of the grouping.
            operation.apply(left, right, left, matching.return_bool)
        })
        .collect()
}

/// Adds the results at times at which a side has a histogram.
fn combine_histograms(
    many: &Series,
    one: &Series,
    (operating, context): (&Operating<'_>, &Context<'_>),
    matching: &Matching<'_>,
    result: &mut Series,
) -> Result<(), QueryError> {
    let is_trim = matches!(operating.operation, Operation::Trim(_));
    if many.histograms.is_empty() && one.histograms.is_empty() && !is_trim {
        return Ok(());
    }
    for step in 0..result.values.len() {
        let (Some(many), Some(one)) = (many.element(step), one.element(step)) else { continue };
        if let (Element::Number(_), Element::Number(_), false) = (many, one, is_trim) {
            continue;
        }
        let swapped = matching.many == ManySide::Right;
        let (left, right) = if swapped { (one, many) } else { (many, one) };
        operating.apply(left, right, left).store(result, step, context.bounds)?;
    }
    Ok(())
}

/// The mark for a time without a match.
const NO_MATCH: u32 = u32::MAX;

/// Returns the series of the "one" side at each time; several series at one time are an error. A
/// single entry applies to all times.
fn partners(
    group: &MatchGroup,
    one: &[Series],
    many_present: &[bool],
    matching: &Matching<'_>,
) -> Result<Vec<u32>, QueryError> {
    if let [only] = group.right[..] {
        return Ok(vec![only as u32]);
    }
    let mut partners = vec![NO_MATCH; if group.right.is_empty() { 0 } else { many_present.len() }];
    for index in &group.right {
        let series = &one[*index];
        for (step, partner) in partners.iter_mut().enumerate() {
            if !many_present[step] || !series.is_at(step) {
                continue;
            }
            if *partner != NO_MATCH {
                let side = if matching.many == ManySide::Right { "left" } else { "right" };
                let mut both_labels = [&one[*partner as usize].labels, &series.labels];
                both_labels.sort();
                let [first, next] = both_labels.map(Labels::in_braces);
                return Err(QueryError::Execution(format!(
                    "found duplicate series for the match group {} on the {side} hand-side of the \
                     operation: [{first}, {next}];many-to-many matching not allowed: matching \
                     labels must be unique on one side",
                    group.signature.in_braces(),
                )));
            }
            *partner = *index as u32;
        }
    }
    Ok(partners)
}

/// Returns the distinct partners of a series over time.
fn distinct_partners(series: &Series, partners: &[u32]) -> Vec<u32> {
    if partners.len() == 1 {
        return partners.iter().copied().filter(|partner| *partner != NO_MATCH).collect();
    }
    let pairs = partners.iter().enumerate();
    let matches = pairs.filter(|(step, partner)| **partner != NO_MATCH && series.is_at(*step));
    let mut distinct: Vec<u32> = matches.map(|(_, partner)| *partner).collect();
    distinct.sort_unstable();
    distinct.dedup();
    distinct
}

/// The results; series with the same labels are joined.
#[derive(Default)]
struct Results {
    positions: HashMap<Labels, usize>,
    series: Vec<Series>,
}

impl Results {
    fn add(&mut self, series: Series, many: ManySide) -> Result<(), QueryError> {
        let Some(position) = self.positions.get(&series.labels) else {
            self.positions.insert(series.labels.clone(), self.series.len());
            self.series.push(series);
            return Ok(());
        };
        let joined = &mut self.series[*position];
        for step in (0..series.values.len()).filter(|step| series.is_at(*step)) {
            if joined.is_at(step) {
                return Err(execution_error(if many == ManySide::Neither {
                    "vector cannot contain metrics with the same labelset"
                } else {
                    "multiple matches for labels: grouping labels must ensure unique matches"
                }));
            }
            joined.copy(step, &series);
        }
        Ok(())
    }
}

fn execution_error(text: &str) -> QueryError {
    QueryError::Execution(text.to_owned())
}
