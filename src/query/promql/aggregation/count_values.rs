//! `count_values`, an aggregation that turns values into labels.
//!
//! Must never know: the store.

use std::collections::HashMap;

use super::{
    Aggregator,
    groups::{SeriesGroup, group_series},
};
use crate::query::{Labels, QueryError};
use crate::{
    model::METRIC_TAG,
    query::promql::{
        context::Context,
        syntax::tree::Grouping,
        value::{
            histograms::text_of_histogram,
            numbers::text_of,
            series::{ABSENT, Element, Series, is_present},
            text::{is_label_name, quoted},
        },
    },
};

/// Approximate memory of the labels of a new series; the labels of its group are shared.
const COUNTED_BYTES: usize = 512;

/// The number of series of each group with each value. The groups determine the order of the
/// result, so the whole input stays in memory.
pub(super) struct CountValues<'a> {
    name: String,
    grouping: Option<&'a Grouping>,
    input: Vec<Series>,
    context: &'a Context<'a>,
}

impl<'a> CountValues<'a> {
    pub(super) fn new(
        name: String,
        grouping: Option<&'a Grouping>,
        context: &'a Context<'a>,
    ) -> Self {
        Self { name, grouping, input: Vec::new(), context }
    }
}

impl Aggregator for CountValues<'_> {
    fn add(&mut self, series: Vec<Series>) -> Result<(), QueryError> {
        self.input.extend(series);
        Ok(())
    }

    fn series_count(&self) -> usize {
        self.input.len()
    }

    fn finish(self: Box<Self>) -> Result<Vec<Series>, QueryError> {
        let groups = group_series(&self.input, self.grouping);
        count_values(&self.input, groups, &self.name, self.grouping, self.context)
    }
}

/// Counts the series of a group with each value. The value becomes a label.
fn count_values(
    input: &[Series],
    groups: Vec<SeriesGroup>,
    name: &str,
    grouping: Option<&Grouping>,
    context: &Context<'_>,
) -> Result<Vec<Series>, QueryError> {
    let (steps, bounds) = (context.steps, context.bounds);
    if !is_label_name(name) {
        return Err(QueryError::Execution(format!("invalid label name {}", quoted(name))));
    }
    // `without` also removes the label that contains the value.
    let drops_label = matches!(grouping, Some(Grouping::Except(names))
        if name == METRIC_TAG || names.iter().any(|excluded| excluded == name));
    let mut positions: HashMap<Labels, usize> = HashMap::new();
    let mut out: Vec<Series> = Vec::new();
    for group in groups {
        for index in &group.members {
            bounds.check_time()?;
            for step in 0..steps.count {
                let text = match input[*index].element(step) {
                    None => continue,
                    Some(Element::Number(value)) => text_of(value),
                    Some(Element::Histogram(histogram)) => {
                        let text = text_of_histogram(histogram);
                        bounds.reserve(text.len())?;
                        text
                    }
                };
                let labels =
                    if drops_label { group.labels.clone() } else { group.labels.with(name, &text) };
                let position = if let Some(position) = positions.get(&labels) {
                    *position
                } else {
                    bounds.check_points(out.len() + 1, steps.count)?;
                    bounds.reserve(COUNTED_BYTES + name.len())?;
                    positions.insert(labels.clone(), out.len());
                    let values = vec![ABSENT; steps.count];
                    let drop_metric = group.drop_metric && name != METRIC_TAG;
                    out.push(Series::new(labels, drop_metric, values));
                    out.len() - 1
                };
                let count = &mut out[position].values[step];
                *count = if is_present(*count) { *count + 1.0 } else { 1.0 };
            }
        }
    }
    Ok(out)
}
