//! Vector matching: the series of one side that match series of the other side.
//!
//! Series are grouped by the labels of the matching. Matches are determined for each time, because
//! series begin and end. Must never know: the store, values.

use std::collections::HashMap;

use super::operators::Operation;
use crate::query::Labels;
use crate::query::promql::{
    syntax::tree::{Binary, Grouping, ManySide},
    value::series::Series,
};

/// The matching of series.
pub(super) struct Matching<'a> {
    labels: &'a [String],
    /// True for `on`, false for `ignoring`.
    on: bool,
    /// Labels that the result takes from the "one" side.
    included: &'a [String],
    /// The side that may have several series per match.
    pub(super) many: ManySide,
    /// True when comparisons return 1 or 0.
    pub(super) return_bool: bool,
}

impl<'a> Matching<'a> {
    /// Creates the matching from the modifiers of an operator.
    pub(super) fn new(binary: &'a Binary) -> Self {
        let labels = binary.matching.labels.as_ref();
        Self {
            labels: labels.map_or(&[], Grouping::names),
            on: labels.is_some_and(Grouping::is_only),
            included: &binary.matching.included,
            many: binary.matching.many,
            return_bool: binary.return_bool,
        }
    }

    /// Returns the labels that two series must share to match.
    fn signature(&self, labels: &Labels) -> Labels {
        if self.on { labels.only(self.labels) } else { labels.without(self.labels) }
    }

    /// Returns the labels of the result of two series.
    pub(super) fn result_labels(
        &self,
        many: &Labels,
        one: &Labels,
        operation: Operation,
    ) -> Labels {
        let mut labels = many.clone();
        if operation.drops_metric() {
            labels = labels.without_metric();
        }
        if self.many == ManySide::Neither {
            labels = if self.on {
                labels.only(self.labels)
            } else {
                labels.filtered(|name| !self.labels.iter().any(|ignored| ignored == name))
            };
        }
        for name in self.included {
            labels = labels.with(name, one.get(name));
        }
        labels
    }
}

/// Series of both sides with the same signature, by index.
#[derive(Default)]
pub(super) struct MatchGroup {
    pub(super) signature: Labels,
    pub(super) left: Vec<usize>,
    pub(super) right: Vec<usize>,
}

/// Returns the groups of two sides.
pub(super) fn groups(
    left: &[Series],
    right: &[Series],
    matching: &Matching<'_>,
) -> Vec<MatchGroup> {
    let mut positions: HashMap<Labels, usize> = HashMap::new();
    let mut groups: Vec<MatchGroup> = Vec::new();
    let sides = [(left, true), (right, false)];
    for (series, is_left) in sides {
        for (index, entry) in series.iter().enumerate() {
            let signature = matching.signature(&entry.labels);
            let position = *positions.entry(signature).or_insert_with_key(|signature| {
                groups.push(MatchGroup { signature: signature.clone(), ..MatchGroup::default() });
                groups.len() - 1
            });
            let group = &mut groups[position];
            if is_left { group.left.push(index) } else { group.right.push(index) }
        }
    }
    groups
}
