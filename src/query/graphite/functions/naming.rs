//! Functions that change names, and functions that only change the display of a line.

use regex::RegexBuilder;

use super::Entry;
use crate::query::{
    QueryError,
    graphite::{
        aggregation::Aggregation,
        arguments::{Arguments, key_of, path_of},
        context::Context,
        line::{Line, NAME_BYTES_MAX, cut_name},
    },
};

pub(super) const FUNCTIONS: &[Entry] = &[
    ("alias", alias),
    ("aliasByNode", by_nodes),
    ("aliasByTags", by_nodes),
    ("aliasByMetric", by_metric),
    ("aliasSub", substitute),
    ("substr", substring),
    ("consolidateBy", consolidate_by),
    ("cumulative", cumulative),
    ("setXFilesFactor", keep_lines),
    ("xFilesFactor", keep_lines),
    ("alpha", keep_lines),
    ("color", keep_lines),
    ("dashed", keep_lines),
    ("drawAsInfinite", keep_lines),
    ("lineWidth", keep_lines),
    ("secondYAxis", keep_lines),
    ("stacked", keep_lines),
];

/// The maximum size of a compiled pattern in bytes.
const PATTERN_BYTES_MAX: usize = 1 << 20;

type Lines = Result<Vec<Line>, QueryError>;

/// Renames each line. A name of more than 16 KiB is cut.
fn rename_lines(arguments: &Arguments<'_>, name: impl Fn(&Line) -> String) -> Lines {
    let lines = arguments.lines(0)?.into_iter();
    let renamed = lines.map(|line| Line { name: cut_name(name(&line)), ..line });
    renamed.map(|line| arguments.context.reserve_line(line)).collect()
}

fn keep_lines(arguments: &Arguments<'_>) -> Lines {
    arguments.lines(0)
}

fn alias(arguments: &Arguments<'_>) -> Lines {
    let name = arguments.text(1, "newName")?;
    rename_lines(arguments, |_| name.to_owned())
}

fn by_nodes(arguments: &Arguments<'_>) -> Lines {
    let nodes = super::nodes(arguments, 1)?;
    rename_lines(arguments, |line| key_of(line, &nodes))
}

fn by_metric(arguments: &Arguments<'_>) -> Lines {
    rename_lines(arguments, |line| {
        path_of(&line.name).rsplit('.').next().unwrap_or_default().to_owned()
    })
}

/// Compiles a pattern of a function's argument within limits.
pub(super) fn pattern(arguments: &Arguments<'_>, text: &str) -> Result<regex::Regex, QueryError> {
    arguments.context.limits.reserve(2 * PATTERN_BYTES_MAX)?;
    RegexBuilder::new(text)
        .size_limit(PATTERN_BYTES_MAX)
        .dfa_size_limit(PATTERN_BYTES_MAX)
        .nest_limit(100)
        .build()
        .map_err(|cause| arguments.fault(&format!("the pattern {text:?} is invalid: {cause}")))
}

/// A piece of a replacement: a text, or the number of a group.
enum Piece<'a> {
    Text(&'a str),
    Group(usize),
}

/// Splits a replacement at the groups in it, such as `\1`.
fn pieces(replacement: &str) -> Vec<Piece<'_>> {
    let (mut pieces, mut rest) = (Vec::new(), replacement);
    let mut from = 0;
    while let Some(at) = rest.get(from..).and_then(|text| text.find('\\')).map(|at| from + at) {
        let (before, after) = rest.split_at(at);
        let digits = after.bytes().skip(1).take_while(u8::is_ascii_digit).count();
        from = at + 1;
        if digits > 0 {
            pieces.push(Piece::Text(before));
            // The pattern has no group with a larger number.
            let number = after.get(1..=digits).and_then(|number| number.parse().ok());
            pieces.push(Piece::Group(number.unwrap_or(usize::MAX)));
            (rest, from) = (after.get(1 + digits..).unwrap_or_default(), 0);
        }
    }
    pieces.push(Piece::Text(rest));
    pieces
}

/// Replaces all matches in a name. Ends as soon as the new name is longer than names can be.
fn replace_matches(name: &str, pattern: &regex::Regex, pieces: &[Piece<'_>]) -> String {
    let (mut new, mut end) = (String::new(), 0);
    for found in pattern.captures_iter(name) {
        let Some(whole) = found.get(0) else { continue };
        new.push_str(name.get(end..whole.start()).unwrap_or_default());
        end = whole.end();
        for piece in pieces {
            new.push_str(match piece {
                Piece::Text(text) => text,
                Piece::Group(number) => found.get(*number).map_or("", |group| group.as_str()),
            });
            if new.len() > NAME_BYTES_MAX {
                return new;
            }
        }
    }
    new + name.get(end..).unwrap_or_default()
}

fn substitute(arguments: &Arguments<'_>) -> Lines {
    let pattern = pattern(arguments, arguments.text(1, "search")?)?;
    let text = arguments.text(2, "replace")?;
    arguments.context.limits.reserve(text.len() * size_of::<Piece<'_>>())?;
    let pieces = pieces(text);
    rename_lines(arguments, |line| replace_matches(&line.name, &pattern, &pieces))
}

fn substring(arguments: &Arguments<'_>) -> Lines {
    let start = arguments.optional_number(1, "start")?.unwrap_or_default() as i64;
    let stop = arguments.optional_number(2, "stop")?.unwrap_or_default() as i64;
    rename_lines(arguments, |line| {
        let parts: Vec<_> = path_of(&line.name).split('.').collect();
        let position = |at: i64| {
            let at = if at < 0 { at + parts.len() as i64 } else { at };
            (at.max(0) as usize).min(parts.len())
        };
        let (start, stop) = (position(start), if stop == 0 { parts.len() } else { position(stop) });
        parts.get(start..stop).unwrap_or_default().join(".")
    })
}

fn set_consolidation(arguments: &Arguments<'_>, aggregation: Aggregation, word: &str) -> Lines {
    let context = Context { aggregation: Some(aggregation), ..arguments.context.clone() };
    let lines = arguments.lines_in_context(0, &context)?.into_iter().map(|line| {
        let name = format!("consolidateBy({},\"{word}\")", line.name);
        arguments.context.reserve_line(Line { consolidation: aggregation, ..line.with_name(name) })
    });
    lines.collect()
}

fn consolidate_by(arguments: &Arguments<'_>) -> Lines {
    let word = arguments.text(1, "consolidationFunc")?;
    set_consolidation(arguments, Aggregation::named(word)?, word)
}

fn cumulative(arguments: &Arguments<'_>) -> Lines {
    set_consolidation(arguments, Aggregation::Sum, "sum")
}
