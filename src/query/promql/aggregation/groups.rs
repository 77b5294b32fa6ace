//! Which series are aggregated together: by the labels that `by` keeps, or that `without` leaves.
//!
//! Must never know: values.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::query::promql::{
    syntax::tree::Grouping,
    value::{
        labels::{Labels, is_kept_without_metric},
        series::Series,
    },
};

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
pub(super) fn grouped(input: &[Series], grouping: Option<&Grouping>) -> Vec<Group> {
    let mut places: HashMap<Vec<u8>, usize, RandomState> = HashMap::default();
    let mut groups: Vec<Group> = Vec::new();
    let mut shared = Vec::new();
    for (index, series) in input.iter().enumerate() {
        shared.clear();
        write_shared(&series.labels, grouping, &mut shared);
        let place = places.get(&shared).copied().unwrap_or_else(|| {
            let labels = match grouping {
                Some(Grouping::Only(names)) => series.labels.only(names),
                Some(Grouping::Except(names)) => series.labels.without(names),
                None => Labels::default(),
            };
            places.insert(shared.clone(), groups.len());
            groups.push(Group { labels, drop_metric: false, members: Vec::new() });
            groups.len() - 1
        });
        groups[place].members.push(index);
        groups[place].drop_metric |= series.drop_metric;
    }
    groups
}

/// Writes what the labels of a group have in common, so that two groups differ.
fn write_shared(labels: &Labels, grouping: Option<&Grouping>, out: &mut Vec<u8>) {
    let mut write = |text: &str| {
        out.extend_from_slice(&text.len().to_le_bytes());
        out.extend_from_slice(text.as_bytes());
    };
    match grouping {
        Some(Grouping::Only(names)) => {
            for name in names {
                write(labels.get(name));
            }
        }
        Some(Grouping::Except(names)) => {
            for (name, value) in labels.iter() {
                if is_kept_without_metric(name) && !names.iter().any(|own| own == name) {
                    write(name);
                    write(value);
                }
            }
        }
        None => {}
    }
}
