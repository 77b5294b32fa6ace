//! Functions that choose and sort lines.

use std::collections::BTreeSet;

use super::{Entry, naming::pattern};
use crate::query::{
    QueryError,
    graphite::{aggregation::Aggregation, arguments::Arguments, line::Line},
};

pub(super) const FUNCTIONS: &[Entry] = &[
    ("limit", limit),
    ("exclude", exclude),
    ("grep", grep),
    ("removeEmptySeries", remove_empty),
    ("unique", unique),
    ("sortByName", sort_by_name),
    ("sortByTotal", sort_by_total),
    ("sortByMaxima", sort_by_maxima),
    ("sortByMinima", sort_by_minima),
    ("sortBy", sort_by),
    ("highest", highest),
    ("highestAverage", highest_average),
    ("highestCurrent", highest_current),
    ("highestMax", highest_max),
    ("lowest", lowest),
    ("lowestAverage", lowest_average),
    ("lowestCurrent", lowest_current),
    ("mostDeviant", most_deviant),
    ("averageAbove", average_above),
    ("averageBelow", average_below),
    ("currentAbove", current_above),
    ("currentBelow", current_below),
    ("maximumAbove", maximum_above),
    ("maximumBelow", maximum_below),
    ("minimumAbove", minimum_above),
    ("minimumBelow", minimum_below),
    ("filterSeries", filter),
];

type Lines = Result<Vec<Line>, QueryError>;

fn limit(arguments: &Arguments<'_>) -> Lines {
    let count = arguments.count(1, "n", usize::MAX)?;
    let mut lines = arguments.lines(0)?;
    lines.truncate(count);
    Ok(lines)
}

/// Keeps the lines that fulfil a condition.
fn retained(
    arguments: &Arguments<'_>,
    lines: Vec<Line>,
    mut keep: impl FnMut(&Line) -> bool,
) -> Lines {
    let mut kept = Vec::with_capacity(lines.len());
    for line in lines {
        arguments.context.limits.budget.check()?;
        if keep(&line) {
            kept.push(line);
        }
    }
    Ok(kept)
}

/// Sorts lines by keys, whose memory is reserved until they are sorted.
fn sorted_by_key<K: Ord>(
    arguments: &Arguments<'_>,
    lines: Vec<Line>,
    key: impl Fn(&Line) -> K,
    bytes: impl Fn(&K) -> usize,
) -> Lines {
    let limits = arguments.context.limits;
    let taken = limits.budget.taken();
    let mut keyed = Vec::with_capacity(lines.len());
    for line in lines {
        limits.budget.check()?;
        let key = key(&line);
        limits.reserve(bytes(&key))?;
        keyed.push((key, line));
    }
    keyed.sort_by(|(a, _), (b, _)| a.cmp(b));
    let sorted = keyed.into_iter().map(|(_, line)| line).collect();
    limits.budget.shrink_to(taken);
    Ok(sorted)
}

fn matching(arguments: &Arguments<'_>, wanted: bool) -> Lines {
    let pattern = pattern(arguments, arguments.text(1, "pattern")?)?;
    let lines = arguments.lines(0)?;
    retained(arguments, lines, |line| pattern.is_match(&line.name) == wanted)
}

fn exclude(arguments: &Arguments<'_>) -> Lines {
    matching(arguments, false)
}

fn grep(arguments: &Arguments<'_>) -> Lines {
    matching(arguments, true)
}

fn remove_empty(arguments: &Arguments<'_>) -> Lines {
    retained(arguments, arguments.lines(0)?, |line| line.known().next().is_some())
}

fn unique(arguments: &Arguments<'_>) -> Lines {
    let (lines, mut known) = (arguments.all_lines()?, BTreeSet::new());
    arguments.context.limits.reserve(lines.iter().map(|line| line.name.len() + 64).sum())?;
    retained(arguments, lines, |line| known.insert(line.name.clone()))
}

fn aggregate(line: &Line, aggregation: Aggregation) -> f64 {
    // The last number is the last known one.
    aggregation.of_some(line.values.iter().copied())
}

/// Sorts lines by an aggregate; lines without numbers come last.
fn sorted(arguments: &Arguments<'_>, aggregation: Aggregation, descending: bool) -> Lines {
    let empty = if descending { f64::NEG_INFINITY } else { f64::INFINITY };
    let key = |line: &Line| {
        let value = aggregate(line, aggregation);
        let value = if value.is_nan() { empty } else { value };
        // The order of these whole numbers is that of the values.
        let bits = value.to_bits().cast_signed();
        let ascending = bits ^ ((bits >> 63) & i64::MAX);
        if descending { !ascending } else { ascending }
    };
    sorted_by_key(arguments, arguments.lines(0)?, key, |_| size_of::<i64>())
}

fn sort_by_name(arguments: &Arguments<'_>) -> Lines {
    let (natural, reverse) = (arguments.flag(1, "natural"), arguments.flag(2, "reverse"));
    let key = |line: &Line| if natural { natural_key(&line.name) } else { line.name.clone() };
    let mut lines = sorted_by_key(arguments, arguments.lines(0)?, key, String::len)?;
    if reverse {
        lines.reverse();
    }
    Ok(lines)
}

/// Returns a text whose order is that of the numbers in a name.
fn natural_key(name: &str) -> String {
    let (mut key, mut digits) = (String::new(), String::new());
    for c in name.chars().map(Some).chain([None]) {
        if let Some(digit) = c.filter(char::is_ascii_digit) {
            digits.push(digit);
            continue;
        }
        if !digits.is_empty() {
            key.extend(std::iter::repeat_n('0', 20_usize.saturating_sub(digits.len())));
            key.push_str(&digits);
            digits.clear();
        }
        key.extend(c);
    }
    key
}

fn sort_by_total(arguments: &Arguments<'_>) -> Lines {
    sorted(arguments, Aggregation::Sum, true)
}

fn sort_by_maxima(arguments: &Arguments<'_>) -> Lines {
    sorted(arguments, Aggregation::Max, true)
}

fn sort_by_minima(arguments: &Arguments<'_>) -> Lines {
    sorted(arguments, Aggregation::Min, false)
}

fn sort_by(arguments: &Arguments<'_>) -> Lines {
    let aggregation = arguments.aggregation(1, "func", "average")?;
    sorted(arguments, aggregation, arguments.flag(2, "reverse"))
}

fn extreme(arguments: &Arguments<'_>, aggregation: Aggregation, descending: bool) -> Lines {
    let count = arguments.count(1, "n", 1)?;
    let mut lines = sorted(arguments, aggregation, descending)?;
    lines.truncate(count);
    Ok(lines)
}

fn highest(arguments: &Arguments<'_>) -> Lines {
    extreme(arguments, arguments.aggregation(2, "func", "average")?, true)
}

fn highest_average(arguments: &Arguments<'_>) -> Lines {
    extreme(arguments, Aggregation::Average, true)
}

fn highest_current(arguments: &Arguments<'_>) -> Lines {
    extreme(arguments, Aggregation::Last, true)
}

fn highest_max(arguments: &Arguments<'_>) -> Lines {
    extreme(arguments, Aggregation::Max, true)
}

fn lowest(arguments: &Arguments<'_>) -> Lines {
    extreme(arguments, arguments.aggregation(2, "func", "average")?, false)
}

fn lowest_average(arguments: &Arguments<'_>) -> Lines {
    extreme(arguments, Aggregation::Average, false)
}

fn lowest_current(arguments: &Arguments<'_>) -> Lines {
    extreme(arguments, Aggregation::Last, false)
}

fn most_deviant(arguments: &Arguments<'_>) -> Lines {
    extreme(arguments, Aggregation::Deviation, true)
}

/// Keeps the lines whose aggregate fulfils a condition; a missing one fulfils none.
fn kept(
    arguments: &Arguments<'_>,
    aggregation: Aggregation,
    keep: impl Fn(f64, f64) -> bool,
) -> Lines {
    let border = arguments.number(1, "n")?;
    let lines = arguments.lines(0)?;
    retained(arguments, lines, |line| keep(aggregate(line, aggregation), border))
}

fn average_above(arguments: &Arguments<'_>) -> Lines {
    kept(arguments, Aggregation::Average, |value, border| value >= border)
}

fn average_below(arguments: &Arguments<'_>) -> Lines {
    kept(arguments, Aggregation::Average, |value, border| value <= border)
}

fn current_above(arguments: &Arguments<'_>) -> Lines {
    kept(arguments, Aggregation::Last, |value, border| value >= border)
}

fn current_below(arguments: &Arguments<'_>) -> Lines {
    kept(arguments, Aggregation::Last, |value, border| value <= border)
}

fn maximum_above(arguments: &Arguments<'_>) -> Lines {
    kept(arguments, Aggregation::Max, |value, border| value > border)
}

fn maximum_below(arguments: &Arguments<'_>) -> Lines {
    kept(arguments, Aggregation::Max, |value, border| value <= border)
}

fn minimum_above(arguments: &Arguments<'_>) -> Lines {
    kept(arguments, Aggregation::Min, |value, border| value > border)
}

fn minimum_below(arguments: &Arguments<'_>) -> Lines {
    kept(arguments, Aggregation::Min, |value, border| value <= border)
}

fn filter(arguments: &Arguments<'_>) -> Lines {
    let aggregation = arguments.aggregation(1, "func", "average")?;
    let operator = arguments.text(2, "operator")?;
    let border = arguments.number(3, "threshold")?;
    let keep: fn(f64, f64) -> bool = match operator {
        "=" => |value, border| value == border,
        "!=" => |value, border| value != border,
        ">" => |value, border| value > border,
        ">=" => |value, border| value >= border,
        "<" => |value, border| value < border,
        "<=" => |value, border| value <= border,
        _ => {
            let message = format!("{operator:?} is not an operator: use =, !=, >, >=, < or <=");
            return Err(arguments.fault(&message));
        }
    };
    let lines = arguments.lines(0)?;
    retained(arguments, lines, |line| keep(aggregate(line, aggregation), border))
}
