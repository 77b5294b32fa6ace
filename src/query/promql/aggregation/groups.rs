//! Which series are aggregated together: by the labels that `by` keeps, or that `without` leaves.
//!
//! Must never know: values.

use std::collections::HashMap;

use promql_parser::parser::LabelModifier;

use crate::query::promql::value::{labels::Labels, series::Series};

/// Series that are aggregated together, by index.
pub(super) struct Group {
    /// What their labels have in common.
    pub(super) labels: Labels,
    /// Whether the metric's name of any of them no longer fits.
    pub(super) drop_metric: bool,
    /// Which series of the input.
    pub(super) members: Vec<usize>,
}

/// The groups of an input.
pub(super) fn grouped(input: &[Series], modifier: Option<&LabelModifier>) -> Vec<Group> {
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
