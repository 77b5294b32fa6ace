//! Functions that combine several lines into one, or one line with another.

use std::collections::{BTreeMap, BTreeSet};

use super::Entry;
use crate::query::{
    QueryError,
    graphite::{
        aggregation::{Aggregation, NULL},
        arguments::{Arguments, key_of},
        line::{Line, normalize},
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

type Lines = Result<Vec<Line>, QueryError>;

/// Returns one line with the aggregate of all lines at each time, named after their patterns.
pub(super) fn combined(lines: Vec<Line>, function: &str, aggregation: Aggregation) -> Vec<Line> {
    let mut origins: Vec<_> = lines.iter().map(|line| line.origin.clone()).collect();
    let mut known = BTreeSet::new();
    origins.retain(|origin| known.insert(origin.clone()));
    let name = format!("{function}({})", origins.join(","));
    combined_as(lines, name, aggregation).into_iter().collect()
}

/// Returns one line with the aggregate of all lines at each time; `None` without lines.
pub(super) fn combined_as(
    mut lines: Vec<Line>,
    name: String,
    aggregation: Aggregation,
) -> Option<Line> {
    normalize(&mut lines);
    let first = lines.first()?;
    let at = |index: usize| lines.iter().filter_map(move |line| line.values.get(index).copied());
    let values = (0..first.values.len()).map(|index| aggregation.of_some(at(index))).collect();
    let mut tags: BTreeMap<String, String> = first.tags.clone();
    tags.retain(|tag, value| lines.iter().all(|line| line.tags.get(tag) == Some(value)));
    tags.entry("name".to_owned()).or_insert_with(|| name.clone());
    let line = Line { tags, values, ..first.clone() };
    Some(line.named(name))
}

fn all(arguments: &Arguments<'_>, function: &str, aggregation: Aggregation) -> Lines {
    Ok(combined(arguments.all_lines()?, function, aggregation))
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
    let combined = combined(lines, "countSeries", Aggregation::Count).into_iter();
    Ok(combined.map(|line| line.mapped(|_| count)).collect())
}

fn group(arguments: &Arguments<'_>) -> Lines {
    arguments.all_lines()
}

fn aggregate(arguments: &Arguments<'_>) -> Lines {
    let name = arguments.text(1, "func")?;
    let function = format!("{}Series", name.trim_end_matches("Series"));
    Ok(combined(arguments.lines(0)?, &function, Aggregation::named(name)?))
}

fn percentile(arguments: &Arguments<'_>) -> Lines {
    let percent = arguments.number(1, "n")?.clamp(0.0, 100.0);
    let lines = arguments.lines(0)?;
    let origin = lines.first().map(|line| line.origin.clone()).unwrap_or_default();
    let name = format!("percentileOfSeries({origin},{percent})");
    Ok(combined_as(lines, name, Aggregation::Percentile(percent)).into_iter().collect())
}

/// Returns the quotient of two numbers; missing when the divisor is zero.
fn quotient(dividend: f64, divisor: f64) -> f64 {
    if divisor == 0.0 { NULL } else { dividend / divisor }
}

/// Computes a line from the numbers of two lines at the same times.
pub(super) fn paired(
    left: &Line,
    right: &Line,
    name: String,
    compute: impl Fn(f64, f64) -> f64,
) -> Line {
    let mut both = [left.clone(), right.clone()];
    normalize(&mut both);
    let [left, right] = both;
    let values = left.values.iter().zip(&right.values).map(|(a, b)| compute(*a, *b)).collect();
    Line { values, ..left }.named(name)
}

fn divide(arguments: &Arguments<'_>) -> Lines {
    let (dividends, divisors) = (arguments.lines(0)?, arguments.lines(1)?);
    let divided = |dividend: Line| match divisors.as_slice() {
        [divisor] => {
            let name = format!("divideSeries({},{})", dividend.name, divisor.name);
            Ok(paired(&dividend, divisor, name, quotient))
        }
        [] => {
            let name = format!("divideSeries({},MISSING)", dividend.name);
            Ok(dividend.mapped(|_| NULL).named(name))
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
            "the dividends are {} series and the divisors {}: use as many",
            dividends.len(),
            divisors.len()
        );
        return Err(arguments.fault(&message));
    }
    let pairs = dividends.iter().zip(&divisors);
    let divided = pairs.map(|(dividend, divisor)| {
        let name = format!("divideSeries({},{})", dividend.name, divisor.name);
        paired(dividend, divisor, name, quotient)
    });
    Ok(divided.collect())
}

/// Returns the percentage of each line of a total: the sum of all lines, another line, a number, or
/// the sum of the lines with the same nodes.
fn as_percent(arguments: &Arguments<'_>) -> Lines {
    let lines = arguments.lines(0)?;
    let percent = |part: f64, total: f64| quotient(part, total) * 100.0;
    let total = arguments.get(1, "total");
    if arguments.call.arguments.len() > 2 {
        let nodes = arguments.nodes(2)?;
        let totals = if total.is_some() { arguments.lines(1)? } else { lines.clone() };
        let mut sums: BTreeMap<String, Vec<Line>> = BTreeMap::new();
        for total in totals {
            sums.entry(key_of(&total, &nodes)).or_default().push(total);
        }
        let sums: BTreeMap<String, Line> = sums
            .into_iter()
            .filter_map(|(key, group)| {
                Some((key, combined(group, "sumSeries", Aggregation::Sum).pop()?))
            })
            .collect();
        let of_group = lines.iter().map(|line| {
            if let Some(total) = sums.get(&key_of(line, &nodes)) {
                let name = format!("asPercent({},{})", line.name, total.name);
                return paired(line, total, name, percent);
            }
            let name = format!("asPercent({},MISSING)", line.name);
            line.clone().mapped(|_| NULL).named(name)
        });
        return Ok(of_group.collect());
    }
    if let Ok(Some(number)) = arguments.optional_number(1, "total") {
        let of_number = lines.into_iter().map(|line| {
            let name = format!("asPercent({},{number})", line.name);
            line.mapped(|value| percent(value, number)).named(name)
        });
        return Ok(of_number.collect());
    }
    let totals = match total {
        Some(_) => arguments.lines(1)?,
        None => combined(lines.clone(), "sumSeries", Aggregation::Sum),
    };
    match totals.as_slice() {
        [total] => Ok(lines
            .iter()
            .map(|line| {
                let name = format!("asPercent({},{})", line.name, total.name);
                paired(line, total, name, percent)
            })
            .collect()),
        [] => Ok(Vec::new()),
        many if many.len() == lines.len() => Ok(lines
            .iter()
            .zip(many)
            .map(|(line, total)| {
                let name = format!("asPercent({},{})", line.name, total.name);
                paired(line, total, name, percent)
            })
            .collect()),
        many => {
            let message = format!(
                "the total is {} series for {}: use one, or as many",
                many.len(),
                lines.len()
            );
            Err(arguments.fault(&message))
        }
    }
}
