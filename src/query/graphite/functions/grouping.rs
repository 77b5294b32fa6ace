//! Functions that combine the lines with the same parts of names or the same tags.

use std::collections::BTreeMap;

use super::{Entry, combine::combine_if_any};
use crate::query::{
    QueryError,
    graphite::{
        aggregation::Aggregation,
        arguments::{Arguments, Node, key_of, path_of},
        line::{Line, cut_name},
    },
};

pub(super) const FUNCTIONS: &[Entry] = &[
    ("groupByNode", by_node),
    ("groupByNodes", by_nodes),
    ("groupByTags", by_tags),
    ("sumSeriesWithWildcards", sum_without),
    ("averageSeriesWithWildcards", average_without),
    ("multiplySeriesWithWildcards", multiply_without),
    ("aggregateWithWildcards", aggregate_without),
];

type Lines = Result<Vec<Line>, QueryError>;

/// Returns the aggregate of the lines with the same key. The groups are in the order of their
/// first lines.
fn combine_groups(
    arguments: &Arguments<'_>,
    lines: Vec<Line>,
    aggregation: Aggregation,
    key: impl Fn(&Line) -> String,
) -> Lines {
    let context = arguments.context;
    let mut order: BTreeMap<String, usize> = BTreeMap::new();
    let mut groups: Vec<(String, Vec<Line>)> = Vec::new();
    for line in lines {
        context.limits.budget.check()?;
        let key = cut_name(key(&line));
        context.limits.reserve(2 * key.len() + size_of::<Line>())?;
        let position = *order.entry(key.clone()).or_insert(groups.len());
        if position == groups.len() {
            groups.push((key, Vec::new()));
        }
        groups[position].1.push(line);
    }
    let combine =
        |(name, group): (String, Vec<Line>)| combine_if_any(context, group, name, aggregation);
    groups.into_iter().filter_map(|group| combine(group).transpose()).collect()
}

fn by_node(arguments: &Arguments<'_>) -> Lines {
    let node = match arguments.optional_number(1, "nodeNum") {
        Ok(Some(position)) => Node::Part(position as i64),
        _ => Node::Tag(arguments.text(1, "nodeNum")?),
    };
    let aggregation = arguments.aggregation(2, "callback", "average")?;
    combine_groups(arguments, arguments.lines(0)?, aggregation, |line| key_of(line, &[node]))
}

fn by_nodes(arguments: &Arguments<'_>) -> Lines {
    let aggregation = arguments.aggregation(1, "callback", "average")?;
    let nodes = super::nodes(arguments, 2)?;
    combine_groups(arguments, arguments.lines(0)?, aggregation, |line| key_of(line, &nodes))
}

/// Names each group `metric;tag=value;...`, with the aggregation's name when the metrics differ.
fn by_tags(arguments: &Arguments<'_>) -> Lines {
    let callback = arguments.text(1, "callback")?;
    let aggregation = Aggregation::named(callback)?;
    let tags: Vec<_> = super::nodes(arguments, 2)?
        .into_iter()
        .filter_map(|node| match node {
            Node::Tag(tag) => Some(tag),
            Node::Part(_) => None,
        })
        .collect();
    let lines = arguments.lines(0)?;
    let metric = |line: &Line| line.tags.get("name").cloned().unwrap_or_default();
    let first = lines.first().map(&metric).unwrap_or_default();
    let share_metric = lines.iter().all(|line| metric(line) == first);
    let shared = if share_metric { first } else { callback.to_owned() };
    let key = |line: &Line| {
        let by_name = tags.contains(&"name");
        let mut words = vec![if by_name { metric(line) } else { shared.clone() }];
        let mut pairs: Vec<_> = tags.iter().filter(|tag| **tag != "name").collect();
        pairs.sort();
        words.extend(
            pairs
                .into_iter()
                .map(|tag| format!("{tag}={}", line.tags.get(*tag).map_or("", String::as_str))),
        );
        words.join(";")
    };
    let mut groups = combine_groups(arguments, lines, aggregation, key)?;
    for group in &mut groups {
        let mut words = group.name.split(';');
        let name = words.next().unwrap_or_default().to_owned();
        let pairs = words.filter_map(|pair| pair.split_once('='));
        let group_tags = pairs.map(|(tag, value)| (tag.to_owned(), value.to_owned()));
        group.tags = group_tags.chain([("name".to_owned(), name)]).collect();
    }
    Ok(groups)
}

/// Combines the lines whose paths are equal when some parts are ignored.
fn combine_without_parts(
    arguments: &Arguments<'_>,
    aggregation: Aggregation,
    from: usize,
) -> Lines {
    let positions: Vec<_> = super::nodes(arguments, from)?
        .into_iter()
        .filter_map(|node| match node {
            Node::Part(position) => usize::try_from(position).ok(),
            Node::Tag(_) => None,
        })
        .collect();
    combine_groups(arguments, arguments.lines(0)?, aggregation, |line| {
        let parts = path_of(&line.name).split('.').enumerate();
        let kept: Vec<_> = parts
            .filter(|(position, _)| !positions.contains(position))
            .map(|(_, part)| part)
            .collect();
        kept.join(".")
    })
}

fn sum_without(arguments: &Arguments<'_>) -> Lines {
    combine_without_parts(arguments, Aggregation::Sum, 1)
}

fn average_without(arguments: &Arguments<'_>) -> Lines {
    combine_without_parts(arguments, Aggregation::Average, 1)
}

fn multiply_without(arguments: &Arguments<'_>) -> Lines {
    combine_without_parts(arguments, Aggregation::Product, 1)
}

fn aggregate_without(arguments: &Arguments<'_>) -> Lines {
    combine_without_parts(arguments, arguments.aggregation(1, "func", "sum")?, 2)
}
