//! Functions that create lines, or that read lines at other times.

use std::collections::BTreeMap;

use super::Entry;
use crate::query::{
    QueryError,
    graphite::{
        aggregation::Aggregation,
        arguments::Arguments,
        line::{Line, cut_name},
        syntax::Expr,
        times::offset_seconds,
    },
};

pub(super) const FUNCTIONS: &[Entry] = &[
    ("seriesByTag", by_tag),
    ("constantLine", constant),
    ("threshold", threshold),
    ("timeShift", time_shift),
    ("timeStack", time_stack),
];

/// The maximum number of shifted copies.
const STACKED_MAX: i64 = 100;

type Lines = Result<Vec<Line>, QueryError>;

fn by_tag(arguments: &Arguments<'_>) -> Lines {
    let condition = |argument: &Expr| match argument {
        Expr::Text(text) | Expr::Path(text) => Ok(text.clone()),
        Expr::Call(_) | Expr::Number(_) | Expr::Bool(_) | Expr::Nothing => {
            Err(arguments.fault("each argument must be a condition such as 'name=disk.used'"))
        }
    };
    // An unquoted `tag=value` is read as an argument with a name.
    let named = arguments.call.named.iter();
    let named = named.map(|(tag, value)| Ok(format!("{tag}={}", condition(value)?)));
    let all = arguments.call.arguments.iter().map(condition).chain(named);
    arguments.context.lines_with_tags(&all.collect::<Result<Vec<_>, _>>()?)
}

/// Returns a line with the same number at the start, the middle and the end of the range.
fn level_line(arguments: &Arguments<'_>, value: f64, name: String) -> Line {
    let range = &arguments.context.range;
    let step = ((range.end - range.start) / 2).max(1);
    Line {
        tags: BTreeMap::from([("name".to_owned(), name.clone())]),
        origin: name.clone(),
        name,
        start: range.start,
        step,
        values: vec![value; 3],
        consolidation: Aggregation::Average,
    }
}

fn constant(arguments: &Arguments<'_>) -> Lines {
    let value = arguments.number(0, "value")?;
    Ok(vec![arguments.context.reserve_line(level_line(arguments, value, value.to_string()))?])
}

fn threshold(arguments: &Arguments<'_>) -> Lines {
    let value = arguments.number(0, "value")?;
    let name = match arguments.text_or(1, "label", "")? {
        "" => value.to_string(),
        label => label.to_owned(),
    };
    Ok(vec![arguments.context.reserve_line(level_line(arguments, value, cut_name(name)))?])
}

/// Returns the lines of an earlier range at the times of the requested range. An offset without a
/// sign also selects an earlier range.
fn time_shift(arguments: &Arguments<'_>) -> Lines {
    let text = arguments.text(1, "timeShift")?;
    let seconds = offset_seconds(text).ok_or_else(|| {
        arguments.fault(&format!("argument 2 (timeShift) is {text:?}; use a span such as '1d'"))
    })?;
    let text = text.trim();
    let back_seconds = if text.starts_with('+') { -seconds } else { seconds.abs() };
    let sign = if text.starts_with(['+', '-']) { "" } else { "-" };
    let lines =
        arguments.lines_in_context(0, &arguments.context.shifted_back(back_seconds)?)?.into_iter();
    let time_shift = lines.map(|line| {
        let name = format!("timeShift({}, \"{sign}{text}\")", line.name);
        let line = Line { start: line.start.saturating_add(back_seconds), ..line };
        arguments.context.reserve_line(line.with_name(name))
    });
    time_shift.collect()
}

fn time_stack(arguments: &Arguments<'_>) -> Lines {
    let unit = arguments.seconds(1, "timeShiftUnit")?;
    let first = arguments.number(2, "timeShiftStart")? as i64;
    let last = arguments.number(3, "timeShiftEnd")? as i64;
    if first < 0 || last < first || last.saturating_sub(first) > STACKED_MAX {
        let message =
            format!("the shifts {first} to {last} must be 0 or more, at most {STACKED_MAX}");
        return Err(arguments.fault(&message));
    }
    let mut all = Vec::new();
    for times in first..=last {
        let back_seconds = unit.saturating_mul(times);
        let lines = arguments
            .lines_in_context(0, &arguments.context.shifted_back(back_seconds)?)?
            .into_iter();
        for line in lines {
            let name = format!("timeShift({},{back_seconds}s,{times})", line.name);
            let line = Line { start: line.start.saturating_add(back_seconds), ..line };
            all.push(arguments.context.reserve_line(line.with_name(name))?);
        }
    }
    Ok(all)
}
