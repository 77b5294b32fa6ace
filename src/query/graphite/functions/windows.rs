//! Functions over spans of time: moving windows, and summaries with longer steps.

use super::Entry;
use crate::query::{
    QueryError,
    graphite::{
        aggregation::{Aggregation, NULL},
        arguments::Arguments,
        line::{BUCKET_BYTES, Line},
        syntax::Expr,
    },
};

pub(super) const FUNCTIONS: &[Entry] = &[
    ("movingAverage", moving_average),
    ("movingMedian", moving_median),
    ("movingSum", moving_sum),
    ("movingMin", moving_min),
    ("movingMax", moving_max),
    ("movingWindow", moving_window),
    ("exponentialMovingAverage", exponential),
    ("summarize", summarize),
    ("smartSummarize", summarize_from_start),
    ("hitcount", hit_count),
];

/// The maximum number of points of a window, and of the lines that a call creates.
const POINTS_MAX: i64 = 1_000_000;

/// The number of computed points between two checks of the budget.
const POINTS_PER_CHECK: usize = 64;

type Lines = Result<Vec<Line>, QueryError>;

/// The length of a moving window.
enum Window {
    Points(i64),
    Seconds(i64),
}

impl Window {
    fn of(arguments: &Arguments<'_>) -> Result<Self, QueryError> {
        let window = match arguments.get(1, "windowSize") {
            Some(Expr::Number(points)) => Self::Points(*points as i64),
            _ => Self::Seconds(arguments.seconds(1, "windowSize")?),
        };
        if let Self::Points(points) = window
            && !(1..=POINTS_MAX).contains(&points)
        {
            let message = format!("a window has 1 to {POINTS_MAX} points, not {points}");
            return Err(arguments.fault(&message));
        }
        Ok(window)
    }

    fn points(&self, step: i64) -> usize {
        match self {
            Self::Points(points) => *points as usize,
            Self::Seconds(seconds) => (seconds / step.max(1)).max(1) as usize,
        }
    }
}

/// Evaluates the first argument over a range that begins one window earlier. Returns each line with
/// the number of its points before the requested range.
fn with_earlier(
    arguments: &Arguments<'_>,
    window: &Window,
) -> Result<Vec<(Line, usize)>, QueryError> {
    let seconds = match window {
        Window::Seconds(seconds) => *seconds,
        Window::Points(points) => {
            let step = arguments.lines(0)?.iter().map(|line| line.step).max();
            points.saturating_mul(step.unwrap_or_default())
        }
    };
    let start = arguments.context.range.start;
    let lines = arguments.lines_in_context(0, &arguments.context.extended_back(seconds))?;
    let before = |line: &Line| {
        let before = (start - line.start).div_euclid(line.step.max(1)) + 1;
        (before.max(0) as usize).min(line.values.len())
    };
    Ok(lines.into_iter().map(|line| (before(&line), line)).map(|(n, line)| (line, n)).collect())
}

/// Returns the text of the window for the names of lines.
fn window_text(arguments: &Arguments<'_>) -> String {
    match arguments.get(1, "windowSize") {
        Some(Expr::Text(span)) => format!("\"{span}\""),
        window => window.map(ToString::to_string).unwrap_or_default(),
    }
}

/// Aggregates the points before each point.
fn aggregate_moving_window(
    arguments: &Arguments<'_>,
    function: &str,
    aggregation: Aggregation,
) -> Lines {
    let window = Window::of(arguments)?;
    let window_text = window_text(arguments);
    let mut all = Vec::new();
    for (line, before) in with_earlier(arguments, &window)? {
        arguments.context.limits.budget.check()?;
        let points = window.points(line.step);
        let work = (line.values.len() as i64).saturating_mul(points as i64);
        if work > POINTS_MAX * 100 {
            let message = format!(
                "windows of {points} points for each of {} points are too much work: use a coarser step or a shorter \
                 window",
                line.values.len()
            );
            return Err(arguments.fault(&message));
        }
        let value = |index: usize| {
            let first = index.saturating_sub(points);
            aggregation.of_some(line.values[first..index].iter().copied())
        };
        let mut values = Vec::new();
        for index in before..line.values.len() {
            if index % POINTS_PER_CHECK == 0 {
                arguments.context.limits.budget.check()?;
            }
            values.push(value(index));
        }
        let name = format!("{function}({},{window_text})", line.name);
        let start = line.time_of(before);
        all.push(arguments.context.reserve_line(Line { start, values, ..line }.with_name(name))?);
    }
    Ok(all)
}

fn moving_average(arguments: &Arguments<'_>) -> Lines {
    aggregate_moving_window(arguments, "movingAverage", Aggregation::Average)
}

fn moving_median(arguments: &Arguments<'_>) -> Lines {
    aggregate_moving_window(arguments, "movingMedian", Aggregation::Median)
}

fn moving_sum(arguments: &Arguments<'_>) -> Lines {
    aggregate_moving_window(arguments, "movingSum", Aggregation::Sum)
}

fn moving_min(arguments: &Arguments<'_>) -> Lines {
    aggregate_moving_window(arguments, "movingMin", Aggregation::Min)
}

fn moving_max(arguments: &Arguments<'_>) -> Lines {
    aggregate_moving_window(arguments, "movingMax", Aggregation::Max)
}

fn moving_window(arguments: &Arguments<'_>) -> Lines {
    let word = arguments.text_or(2, "func", "average")?;
    let mut letters = word.chars();
    let capital = letters.next().map(|first| first.to_ascii_uppercase());
    let function: String = "moving".chars().chain(capital).chain(letters).collect();
    aggregate_moving_window(arguments, &function, Aggregation::named(word)?)
}

/// Begins with the mean of the window before the range.
fn exponential(arguments: &Arguments<'_>) -> Lines {
    let window = Window::of(arguments)?;
    let window_text = window_text(arguments);
    let smoothed = with_earlier(arguments, &window)?.into_iter().map(|(line, before)| {
        let weight = 2.0 / (window.points(line.step) as f64 + 1.0);
        let (earlier, later) = line.values.split_at(before);
        let mut mean = Aggregation::Average.of_some(earlier.iter().copied());
        let next = |value: &f64| {
            if !value.is_nan() {
                mean = if mean.is_nan() { *value } else { weight * value + (1.0 - weight) * mean };
            }
            if value.is_nan() { NULL } else { mean }
        };
        let values = later.iter().map(next).collect();
        let name = format!("exponentialMovingAverage({},{window_text})", line.name);
        let start = line.time_of(before);
        arguments.context.reserve_line(Line { start, values, ..line }.with_name(name))
    });
    smoothed.collect()
}

/// Aggregates a line in buckets of `seconds`, beginning at a time.
fn aggregate_buckets(
    arguments: &Arguments<'_>,
    line: Line,
    seconds: i64,
    start: i64,
    compute: impl Fn(&[f64]) -> f64,
) -> Result<Line, QueryError> {
    let limits = arguments.context.limits;
    let length = line.end().saturating_sub(start);
    let count = length.saturating_add(seconds - 1).div_euclid(seconds).max(0);
    check_points(arguments, count)?;
    // The buckets are dropped as soon as they are aggregated.
    let reserved = limits.budget.reserved();
    limits.reserve((count as usize + line.values.len()).saturating_mul(BUCKET_BYTES))?;
    let mut buckets = vec![Vec::new(); count as usize];
    for (index, value) in line.values.iter().enumerate().filter(|(_, value)| !value.is_nan()) {
        let position = line.time_of(index).saturating_sub(start) / seconds;
        if let Some(bucket) = buckets.get_mut(position as usize) {
            bucket.push(*value);
        }
    }
    let values = buckets.iter().map(|bucket| compute(bucket)).collect();
    drop(buckets);
    limits.budget.shrink_to(reserved);
    Ok(Line { start, step: seconds, values, ..line })
}

/// Refuses lines that would have too many points.
fn check_points(arguments: &Arguments<'_>, points: i64) -> Result<(), QueryError> {
    if points > POINTS_MAX {
        let message =
            format!("{points} points exceed the limit of {POINTS_MAX}: use a longer interval");
        return Err(arguments.fault(&message));
    }
    Ok(())
}

/// Returns the lines of the first argument; refuses them if they would have too many points with a
/// step of `seconds`.
fn lines_to_summarize(arguments: &Arguments<'_>, seconds: i64) -> Lines {
    let lines = arguments.lines(0)?;
    let points = |line: &Line| line.end().saturating_sub(line.start) / seconds + 2;
    check_points(arguments, lines.iter().map(points).fold(0, i64::saturating_add))?;
    Ok(lines)
}

fn summarize_in_buckets(arguments: &Arguments<'_>, from_start: bool) -> Lines {
    let seconds = arguments.seconds(1, "intervalString")?;
    let interval = arguments.text(1, "intervalString")?;
    let word = arguments.text_or(2, "func", "sum")?;
    let aggregation = Aggregation::named(word)?;
    let lines = lines_to_summarize(arguments, seconds)?;
    let function = arguments.function();
    let suffix = if from_start && function == "summarize" { ", true" } else { "" };
    let summaries = lines.into_iter().map(|line| {
        let name = format!("{function}({}, \"{interval}\", \"{word}\"{suffix})", line.name);
        let aligned = line.start.div_euclid(seconds) * seconds;
        let start = if from_start { line.start } else { aligned };
        let line =
            aggregate_buckets(arguments, line, seconds, start, |known| aggregation.of(known))?;
        arguments.context.reserve_line(line.with_name(name))
    });
    summaries.collect()
}

fn summarize(arguments: &Arguments<'_>) -> Lines {
    summarize_in_buckets(arguments, arguments.flag(3, "alignToFrom"))
}

fn summarize_from_start(arguments: &Arguments<'_>) -> Lines {
    summarize_in_buckets(arguments, true)
}

/// Converts lines of hits per second into the number of hits in each interval. The last interval
/// ends with the line.
fn hit_count(arguments: &Arguments<'_>) -> Lines {
    let seconds = arguments.seconds(1, "intervalString")?;
    let interval = arguments.text(1, "intervalString")?;
    let counts = lines_to_summarize(arguments, seconds)?.into_iter().map(|line| {
        let name = format!("hitcount({}, \"{interval}\")", line.name);
        let (step, length) = (line.step as f64, line.end() - line.start);
        let start = line.end() - (length + seconds - 1).div_euclid(seconds) * seconds;
        let count = |known: &[f64]| Aggregation::Sum.of(known) * step;
        let line = aggregate_buckets(arguments, line, seconds, start, count)?;
        arguments.context.reserve_line(line.with_name(name))
    });
    counts.collect()
}
