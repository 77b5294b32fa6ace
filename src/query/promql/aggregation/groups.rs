//! Grouping of series by labels, for `by` and `without`.
//!
//! Must never know: values.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::query::promql::{syntax::tree::Grouping, value::series::Series};
use crate::query::series::labels::{Labels, is_kept_without_metric};

/// Approximate memory of a group, without its labels.
const GROUP_BYTES: usize = 128;

/// The labels of a group.
pub(super) struct GroupLabels {
    /// The labels that all members share.
    pub(super) labels: Labels,
    /// True when the metric's name does not apply to a member.
    pub(super) drop_metric: bool,
}

/// Groups in the order of their first series, which grow with their input.
pub(super) struct Groups<'a> {
    grouping: Option<&'a Grouping>,
    positions: HashMap<Vec<u8>, usize, RandomState>,
    /// The key of a series, in a reused buffer.
    key: Vec<u8>,
    /// All groups.
    pub(super) all: Vec<GroupLabels>,
    /// The approximate memory in bytes.
    pub(super) bytes: usize,
}

impl<'a> Groups<'a> {
    pub(super) fn new(grouping: Option<&'a Grouping>) -> Self {
        let (positions, key, all) = (HashMap::default(), Vec::new(), Vec::new());
        Self { grouping, positions, key, all, bytes: 0 }
    }

    /// Returns the position of a series' group, which is created if it is missing.
    pub(super) fn position_of(&mut self, series: &Series) -> usize {
        self.key.clear();
        write_shared(&series.labels, self.grouping, &mut self.key);
        let position = self.positions.get(&self.key).copied().unwrap_or_else(|| {
            let labels = match self.grouping {
                Some(Grouping::Only(names)) => series.labels.only(names),
                Some(Grouping::Except(names)) => series.labels.without(names),
                None => Labels::default(),
            };
            self.bytes += GROUP_BYTES + 2 * self.key.len() + labels.bytes();
            self.positions.insert(self.key.clone(), self.all.len());
            self.all.push(GroupLabels { labels, drop_metric: false });
            self.all.len() - 1
        });
        self.all[position].drop_metric |= series.drop_metric;
        position
    }
}

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
    let mut groups = Groups::new(grouping);
    let mut members: Vec<Vec<usize>> = Vec::new();
    for (index, series) in input.iter().enumerate() {
        let position = groups.position_of(series);
        if position == members.len() {
            members.push(Vec::new());
        }
        members[position].push(index);
    }
    let with_members = |(group, members): (GroupLabels, _)| SeriesGroup {
        labels: group.labels,
        drop_metric: group.drop_metric,
        members,
    };
    groups.all.into_iter().zip(members).map(with_members).collect()
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
