//! Grouping of series by labels, for `by` and `without`.
//!
//! Must never know: values.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::query::promql::{syntax::tree::Grouping, value::series::Series};
use crate::query::series::labels::{Labels, is_kept_without_metric};

/// A group of series, by index.
pub(super) struct SeriesGroup {
    /// The labels that all members share.
    pub(super) labels: Labels,
    /// True when the metric's name does not apply to a member.
    pub(super) drop_metric: bool,
    /// The indexes of the members in the input.
    pub(super) members: Vec<usize>,
}

/// Returns the groups of an input.
pub(super) fn group_series(input: &[Series], grouping: Option<&Grouping>) -> Vec<SeriesGroup> {
    let mut positions: HashMap<Vec<u8>, usize, RandomState> = HashMap::default();
    let mut groups: Vec<SeriesGroup> = Vec::new();
    let mut shared = Vec::new();
    for (index, series) in input.iter().enumerate() {
        shared.clear();
        write_shared(&series.labels, grouping, &mut shared);
        let position = positions.get(&shared).copied().unwrap_or_else(|| {
            let labels = match grouping {
                Some(Grouping::Only(names)) => series.labels.only(names),
                Some(Grouping::Except(names)) => series.labels.without(names),
                None => Labels::default(),
            };
            positions.insert(shared.clone(), groups.len());
            groups.push(SeriesGroup { labels, drop_metric: false, members: Vec::new() });
            groups.len() - 1
        });
        groups[position].members.push(index);
        groups[position].drop_metric |= series.drop_metric;
    }
    groups
}

/// Writes the labels that the members of a group share, as the key of the group.
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
                if is_kept_without_metric(name) && !names.iter().any(|excluded| excluded == name) {
                    write(name);
                    write(value);
                }
            }
        }
        None => {}
    }
}
