//! Graphite's functions (graphite.readthedocs.io, "Functions"), one file for each group.
//!
//! Must never know: how targets are parsed, how numbers are read.

mod combine;
mod data;
mod filter;
mod grouping;
mod naming;
mod sources;
#[cfg(test)]
mod tests;
mod windows;

use super::{
    arguments::{Arguments, Node},
    line::Line,
};
use crate::query::QueryError;

/// A function of the lines and settings in its arguments.
pub(super) type Function = fn(&Arguments<'_>) -> Result<Vec<Line>, QueryError>;
type Entry = (&'static str, Function);

const GROUPS: [&[Entry]; 7] = [
    combine::FUNCTIONS,
    data::FUNCTIONS,
    filter::FUNCTIONS,
    grouping::FUNCTIONS,
    naming::FUNCTIONS,
    sources::FUNCTIONS,
    windows::FUNCTIONS,
];

/// The maximum number of nodes of a call.
const NODES_MAX: usize = 64;

/// Returns the arguments from an index on as nodes.
fn nodes<'a>(arguments: &Arguments<'a>, from: usize) -> Result<Vec<Node<'a>>, QueryError> {
    let count = arguments.call.arguments.len().saturating_sub(from);
    if count > NODES_MAX {
        let message = format!("{count} nodes exceed the limit of {NODES_MAX}: use fewer");
        return Err(arguments.fault(&message));
    }
    arguments.nodes(from)
}

/// Returns a function by its name.
pub(super) fn find(name: &str) -> Option<Function> {
    let entry = GROUPS.iter().flat_map(|group| group.iter()).find(|(known, _)| *known == name);
    entry.map(|(_, function)| *function)
}

/// Returns the names of all functions in order.
pub(super) fn names() -> Vec<&'static str> {
    let mut names: Vec<_> =
        GROUPS.iter().flat_map(|group| group.iter()).map(|(name, _)| *name).collect();
    names.sort_unstable();
    names
}
