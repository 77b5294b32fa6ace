//! Functions that combine several lines into one, or one line with another.

use std::collections::{BTreeMap, BTreeSet};

use super::Entry;
use crate::query::{
    QueryError,
    graphite::{
        aggregation::{Aggregation, NULL},
        arguments::{Arguments, key_of},
        context::Context,
        line::{Line, NAME_BYTES_MAX, cut, normalize},
    },
};

pub(super) const FUNCTIONS: &[Entry] = &[
    ("sumSeries", sum),
    ("sum", sum),
    ("averageSeries", average),
    ("avg", average),
    ("maxSeries", max),
    ("minSeries", min),
    ("multiplySeries", multiply),
    ("diffSeries", difference),
    ("stddevSeries", deviation),
    ("rangeOfSeries", range),
    ("medianSeries", median),
    ("countSeries", count),
    ("aggregate", aggregate),
    ("percentileOfSeries", percentile),
    ("divideSeries", divide),
    ("divideSeriesLists", divide_lists),
    ("asPercent", as_percent),
    ("pct", as_percent),
    ("group", group),
];

/// The number of combined points between two checks of the budget.
const CHECKED_POINTS: usize = 64;

type Lines = Result<Vec<Line>, QueryError>;

/// Returns one line with the aggregate of all lines at each time, named after their patterns. A
/// name of more than 16 KiB is cut.
pub(super) fn combined(
    context: &Context<'_>,
    lines: Vec<Line>,
    function: &str,
    aggregation: Aggregation,
) -> Lines {
    let (mut known, mut name) = (BTreeSet::new(), format!("{function}("));
    for line in &lines {
        context.limits.budget.check()?;
        if name.len() <= NAME_BYTES_MAX && known.insert(&line.origin) {
            let comma = if known.len() > 1 { "," } else { "" };
            name.extend([comma, &line.origin]);
        }
    }
    name.push(')');
    Ok(combined_as(context, lines, name, aggregation)?.into_iter().collect())
}

/// Returns one line with the aggregate of all lines at each time; `None` without lines.
pub(super) fn combined_as(
    context: &Context<'_>,
    mut lines: Vec<Line>,
    name: String,
    aggregation: Aggregation,
) -> Result<Option<Line>, QueryError> {
    let name = cut(name);
    normalize(&mut lines, context.limits)?;
    let Some(first) = lines.first() else { return Ok(None) };
    let at = |index: usize| lines.iter().filter_map(move |line| line.values.get(index).copied());
    let mut values = Vec::new();
    for index in 0..first.values.len() {
        if index % CHECKED_POINTS == 0 {
            context.limits.budget.check()?;
        }
        values.push(aggregation.of_some(at(index)));
    }
    let mut tags: BTreeMap<String, String> = first.tags.clone();
    tags.retain(|tag, value| lines.iter().all(|line| line.tags.get(tag) == Some(value)));
    tags.entry("name".to_owned()).or_insert_with(|| name.clone());
    let (start, step, consolidation) = (first.start, first.step, first.consolidation);
    let line = Line { name, origin: String::new(), tags, start, step, values, consolidation };
    let origin = line.name.clone();
    context.made(Line { origin, ..line }).map(Some)
}

fn all(arguments: &Arguments<'_>, function: &str, aggregation: Aggregation) -> Lines {
    combined(arguments.context, arguments.all_lines()?, function, aggregation)
}

fn sum(arguments: &Arguments<'_>) -> Lines {
    all(arguments, "sumSeries", Aggregation::Sum)
}

fn average(arguments: &Arguments<'_>) -> Lines {
    all(arguments, "averageSeries", Aggregation::Average)
}

fn max(arguments: &Arguments<'_>) -> Lines {
    all(arguments, "maxSeries", Aggregation::Max)
}

fn min(arguments: &Arguments<'_>) -> Lines {
    all(arguments, "minSeries", Aggregation::Min)
}

fn multiply(arguments: &Arguments<'_>) -> Lines {
    all(arguments, "multiplySeries", Aggregation::Product)
}

fn difference(arguments: &Arguments<'_>) -> Lines {
    all(arguments, "diffSeries", Aggregation::Difference)
}

fn deviation(arguments: &Arguments<'_>) -> Lines {
    all(arguments, "stddevSeries", Aggregation::Deviation)
}

fn range(arguments: &Arguments<'_>) -> Lines {
    all(arguments, "rangeOfSeries", Aggregation::Range)
}

fn median(arguments: &Arguments<'_>) -> Lines {
    all(arguments, "medianSeries", Aggregation::Median)
}

/// Returns the number of lines, with or without numbers.
fn count(arguments: &Arguments<'_>) -> Lines {
    let lines = arguments.all_lines()?;
    let count = lines.len() as f64;
    let combined = combined(arguments.context, lines, "countSeries", Aggregation::Count)?;
    Ok(combined.into_iter().map(|line| line.mapped(|_| count)).collect())
}

fn group(arguments: &Arguments<'_>) -> Lines {
    arguments.all_lines()
}

fn aggregate(arguments: &Arguments<'_>) -> Lines {
    let name = arguments.text(1, "func")?;
    let function = format!("{}Series", name.trim_end_matches("Series"));
    combined(arguments.context, arguments.lines(0)?, &function, Aggregation::named(name)?)
}

fn percentile(arguments: &Arguments<'_>) -> Lines {
    let percent = arguments.number(1, "n")?.clamp(0.0, 100.0);
    let lines = arguments.lines(0)?;
    let origin = lines.first().map(|line| line.origin.clone()).unwrap_or_default();
    let name = format!("percentileOfSeries({origin},{percent})");
    let aggregation = Aggregation::Percentile(percent);
    Ok(combined_as(arguments.context, lines, name, aggregation)?.into_iter().collect())
}

/// Returns the quotient of two numbers; missing when the divisor is zero.
fn quotient(dividend: f64, divisor: f64) -> f64 {
    if divisor == 0.0 { NULL } else { dividend / divisor }
}

/// Computes a line from the numbers of two lines at the same times.
pub(super) fn paired(
    context: &Context<'_>,
    [left, right]: [&Line; 2],
    function: &str,
    compute: impl Fn(f64, f64) -> f64,
) -> Result<Line, QueryError> {
    context.limits.budget.check()?;
    // The copies are gone when the line is computed.
    let taken = context.limits.budget.taken();
    context.limits.reserve(left.bytes() + right.bytes())?;
    let name = format!("{function}({},{})", left.name, right.name);
    let mut both = [left.clone(), right.clone()];
    normalize(&mut both, context.limits)?;
    let [left, right] = both;
    let values = left.values.iter().zip(&right.values).map(|(a, b)| compute(*a, *b)).collect();
    drop(right);
    context.limits.budget.shrink_to(taken);
    context.made(Line { values, ..left }.named(name))
}

fn divide(arguments: &Arguments<'_>) -> Lines {
    let (dividends, divisors) = (arguments.lines(0)?, arguments.lines(1)?);
    let divided = |dividend: Line| match divisors.as_slice() {
        [divisor] => paired(arguments.context, [&dividend, divisor], "divideSeries", quotient),
        [] => {
            let name = format!("divideSeries({},MISSING)", dividend.name);
            arguments.context.made(dividend.mapped(|_| NULL).named(name))
        }
        more => {
            let message = format!("the divisor must be one series, not {}", more.len());
            Err(arguments.fault(&message))
        }
    };
    dividends.into_iter().map(divided).collect()
}

fn divide_lists(arguments: &Arguments<'_>) -> Lines {
    let (dividends, divisors) = (arguments.lines(0)?, arguments.lines(1)?);
    if dividends.len() != divisors.len() {
        let message = format!(
            "the dividends are {} series and the divisors {}: use equal numbers of series",
            dividends.len(),
            divisors.len()
        );
        return Err(arguments.fault(&message));
    }
    let pairs = dividends.iter().zip(&divisors);
    let divided = pairs.map(|(dividend, divisor)| {
        paired(arguments.context, [dividend, divisor], "divideSeries", quotient)
    });
    divided.collect()
}

fn percent(part: f64, total: f64) -> f64 {
    quotient(part, total) * 100.0
}

/// Returns the percentage of each line of a total: the sum of all lines, another line, a number, or
/// the sum of the lines with the same nodes.
fn as_percent(arguments: &Arguments<'_>) -> Lines {
    let (context, lines) = (arguments.context, arguments.lines(0)?);
    if arguments.call.arguments.len() > 2 {
        return as_percent_of_groups(arguments, &lines);
    }
    if let Ok(Some(number)) = arguments.optional_number(1, "total") {
        let of_number = lines.into_iter().map(|line| {
            let name = format!("asPercent({},{number})", line.name);
            context.made(line.mapped(|value| percent(value, number)).named(name))
        });
        return of_number.collect();
    }
    let totals = if arguments.get(1, "total").is_some() {
        arguments.lines(1)?
    } else {
        context.take(&lines)?;
        combined(context, lines.clone(), "sumSeries", Aggregation::Sum)?
    };
    let of = |line: &Line, total: &Line| paired(context, [line, total], "asPercent", percent);
    match totals.as_slice() {
        [total] => lines.iter().map(|line| of(line, total)).collect(),
        [] => Ok(Vec::new()),
        many if many.len() == lines.len() => {
            lines.iter().zip(many).map(|(line, total)| of(line, total)).collect()
        }
        many => {
            let message = format!(
                "the total is {} series for {}: use one, or one for each",
                many.len(),
                lines.len()
            );
            Err(arguments.fault(&message))
        }
    }
}

/// Returns the percentage of each line of the sum of the lines with the same nodes.
fn as_percent_of_groups(arguments: &Arguments<'_>, lines: &[Line]) -> Lines {
    let (context, nodes) = (arguments.context, super::nodes(arguments, 2)?);
    let totals = if arguments.get(1, "total").is_some() {
        arguments.lines(1)?
    } else {
        context.take(lines)?;
        lines.to_vec()
    };
    let mut groups: BTreeMap<String, Vec<Line>> = BTreeMap::new();
    for total in totals {
        let key = cut(key_of(&total, &nodes));
        context.limits.reserve(key.len() + size_of::<Line>())?;
        groups.entry(key).or_default().push(total);
    }
    let mut sums: BTreeMap<String, Line> = BTreeMap::new();
    for (key, group) in groups {
        let sum = combined(context, group, "sumSeries", Aggregation::Sum)?.pop();
        sums.extend(sum.map(|sum| (key, sum)));
    }
    let of_group = lines.iter().map(|line| {
        if let Some(total) = sums.get(&cut(key_of(line, &nodes))) {
            return paired(context, [line, total], "asPercent", percent);
        }
        context.take(std::slice::from_ref(line))?;
        let name = format!("asPercent({},MISSING)", line.name);
        Ok(line.clone().mapped(|_| NULL).named(name))
    });
    of_group.collect()
}
