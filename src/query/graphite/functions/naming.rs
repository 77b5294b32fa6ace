//! Functions that change names, and those that only change how a line is drawn.

use regex::RegexBuilder;

use super::Entry;
use crate::query::{
    QueryError,
    graphite::{
        aggregation::Aggregation,
        arguments::{Arguments, key_of, path_of},
        context::Context,
        line::Line,
    },
};

pub(super) const FUNCTIONS: &[Entry] = &[
    ("alias", alias),
    ("aliasByNode", by_nodes),
    ("aliasByTags", by_nodes),
    ("aliasByMetric", by_metric),
    ("aliasSub", substituted),
    ("substr", substring),
    ("consolidateBy", consolidate_by),
    ("cumulative", cumulative),
    ("setXFilesFactor", unchanged),
    ("xFilesFactor", unchanged),
    ("alpha", unchanged),
    ("color", unchanged),
    ("dashed", unchanged),
    ("drawAsInfinite", unchanged),
    ("lineWidth", unchanged),
    ("secondYAxis", unchanged),
    ("stacked", unchanged),
];

/// The maximum size of a compiled pattern in bytes.
const PATTERN_BYTES_MAX: usize = 1 << 20;

type Lines = Result<Vec<Line>, QueryError>;

fn renamed(arguments: &Arguments<'_>, name: impl Fn(&Line) -> String) -> Lines {
    let lines = arguments.lines(0)?.into_iter();
    Ok(lines.map(|line| Line { name: name(&line), ..line }).collect())
}

fn unchanged(arguments: &Arguments<'_>) -> Lines {
    arguments.lines(0)
}

fn alias(arguments: &Arguments<'_>) -> Lines {
    let name = arguments.text(1, "newName")?;
    renamed(arguments, |_| name.to_owned())
}

fn by_nodes(arguments: &Arguments<'_>) -> Lines {
    let nodes = arguments.nodes(1)?;
    renamed(arguments, |line| key_of(line, &nodes))
}

fn by_metric(arguments: &Arguments<'_>) -> Lines {
    renamed(arguments, |line| path_of(&line.name).rsplit('.').next().unwrap_or_default().to_owned())
}

/// Compiles a pattern of a function's argument within limits.
pub(super) fn pattern(arguments: &Arguments<'_>, text: &str) -> Result<regex::Regex, QueryError> {
    arguments.context.limits.take(2 * PATTERN_BYTES_MAX)?;
    RegexBuilder::new(text)
        .size_limit(PATTERN_BYTES_MAX)
        .dfa_size_limit(PATTERN_BYTES_MAX)
        .nest_limit(100)
        .build()
        .map_err(|cause| arguments.fault(&format!("the pattern {text:?} is invalid: {cause}")))
}

fn substituted(arguments: &Arguments<'_>) -> Lines {
    let pattern = pattern(arguments, arguments.text(1, "search")?)?;
    // `\1` is `${1}` in the library.
    let digits =
        regex::Regex::new(r"\\(\d+)").map_err(|cause| arguments.fault(&cause.to_string()))?;
    let text = arguments.text(2, "replace")?.replace('$', "$$");
    let replacement = digits.replace_all(&text, "$${$1}").into_owned();
    renamed(arguments, |line| {
        let name = pattern.replace_all(&line.name, replacement.as_str());
        name.chars().take(10_000).collect()
    })
}

fn substring(arguments: &Arguments<'_>) -> Lines {
    let start = arguments.optional_number(1, "start")?.unwrap_or_default() as i64;
    let stop = arguments.optional_number(2, "stop")?.unwrap_or_default() as i64;
    renamed(arguments, |line| {
        let parts: Vec<_> = path_of(&line.name).split('.').collect();
        let place = |at: i64| {
            let at = if at < 0 { at + parts.len() as i64 } else { at };
            (at.max(0) as usize).min(parts.len())
        };
        let (start, stop) = (place(start), if stop == 0 { parts.len() } else { place(stop) });
        parts.get(start..stop).unwrap_or_default().join(".")
    })
}

fn consolidated(arguments: &Arguments<'_>, aggregation: Aggregation, word: &str) -> Lines {
    let context = Context { shown: Some(aggregation), ..arguments.context.clone() };
    let lines = arguments.lines_in(0, &context)?.into_iter().map(|line| {
        let name = format!("consolidateBy({},\"{word}\")", line.name);
        Line { consolidation: aggregation, ..line.named(name) }
    });
    Ok(lines.collect())
}

fn consolidate_by(arguments: &Arguments<'_>) -> Lines {
    let word = arguments.text(1, "consolidationFunc")?;
    consolidated(arguments, Aggregation::named(word)?, word)
}

fn cumulative(arguments: &Arguments<'_>) -> Lines {
    consolidated(arguments, Aggregation::Sum, "sum")
}
