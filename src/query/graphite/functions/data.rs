//! Functions that change the numbers of each line.

use super::Entry;
use crate::query::{
    QueryError,
    graphite::{
        aggregation::{Aggregation, NULL},
        arguments::Arguments,
        line::Line,
    },
};

pub(super) const FUNCTIONS: &[Entry] = &[
    ("scale", scale),
    ("scaleToSeconds", scale_to_seconds),
    ("offset", offset),
    ("offsetToZero", offset_to_zero),
    ("absolute", absolute),
    ("invert", invert),
    ("log", logarithm),
    ("logarithm", logarithm),
    ("pow", power),
    ("squareRoot", square_root),
    ("round", round),
    ("roundFunction", round),
    ("derivative", derivative),
    ("nonNegativeDerivative", non_negative),
    ("perSecond", per_second),
    ("integral", integral),
    ("keepLastValue", keep_last),
    ("interpolate", interpolate),
    ("transformNull", transform_null),
    ("isNonNull", is_known),
    ("changed", changed),
    ("delay", delay),
    ("minMax", min_max),
    ("removeAboveValue", remove_above),
    ("removeBelowValue", remove_below),
    ("removeAbovePercentile", remove_above_percentile),
    ("removeBelowPercentile", remove_below_percentile),
    ("nPercentile", percentile),
];

type Lines = Result<Vec<Line>, QueryError>;

/// Changes each line; in the new name, `suffix` follows the line's name.
fn change_lines(arguments: &Arguments<'_>, suffix: &str, change: impl Fn(Line) -> Line) -> Lines {
    let lines = arguments.lines(0)?.into_iter().map(|line| {
        let name = format!("{}({}{suffix})", arguments.function(), line.name);
        arguments.context.reserve_line(change(line).with_name(name))
    });
    lines.collect()
}

fn change_values(
    arguments: &Arguments<'_>,
    suffix: &str,
    compute: impl Fn(f64) -> f64 + Copy,
) -> Lines {
    change_lines(arguments, suffix, |line| line.map_values(compute))
}

fn finite(value: f64) -> f64 {
    if value.is_finite() { value } else { NULL }
}

fn scale(arguments: &Arguments<'_>) -> Lines {
    let factor = arguments.number(1, "factor")?;
    change_values(arguments, &format!(",{factor}"), |value| value * factor)
}

fn scale_to_seconds(arguments: &Arguments<'_>) -> Lines {
    let seconds = arguments.number(1, "seconds")?;
    change_lines(arguments, &format!(",{seconds}"), |line| {
        let factor = seconds / line.step as f64;
        line.map_values(|value| value * factor)
    })
}

fn offset(arguments: &Arguments<'_>) -> Lines {
    let more = arguments.number(1, "factor")?;
    change_values(arguments, &format!(",{more}"), |value| value + more)
}

fn offset_to_zero(arguments: &Arguments<'_>) -> Lines {
    change_lines(arguments, "", |line| {
        let lowest = line.known_values().fold(f64::INFINITY, f64::min);
        line.map_values(|value| value - lowest)
    })
}

fn absolute(arguments: &Arguments<'_>) -> Lines {
    change_values(arguments, "", f64::abs)
}

fn invert(arguments: &Arguments<'_>) -> Lines {
    change_values(arguments, "", |value| finite(value.powi(-1)))
}

fn logarithm(arguments: &Arguments<'_>) -> Lines {
    let base = arguments.optional_number(1, "base")?.unwrap_or(10.0);
    change_values(arguments, &format!(", {base}"), |value| finite(value.log(base)))
}

fn power(arguments: &Arguments<'_>) -> Lines {
    let exponent = arguments.number(1, "factor")?;
    change_values(arguments, &format!(",{exponent}"), |value| finite(value.powf(exponent)))
}

fn square_root(arguments: &Arguments<'_>) -> Lines {
    change_values(arguments, "", |value| finite(value.sqrt()))
}

fn round(arguments: &Arguments<'_>) -> Lines {
    let digits = arguments.optional_number(1, "precision")?.unwrap_or_default();
    let factor = 10_f64.powi(digits.clamp(-15.0, 15.0) as i32);
    change_values(arguments, "", |value| (value * factor).round() / factor)
}

/// Computes each number from its predecessor and itself.
fn from_previous(line: Line, compute: impl Fn(f64, f64) -> f64) -> Line {
    let mut previous = NULL;
    line.map_values(|value| {
        let computed = compute(previous, value);
        previous = value;
        computed
    })
}

fn derivative(arguments: &Arguments<'_>) -> Lines {
    change_lines(arguments, "", |line| from_previous(line, |previous, value| value - previous))
}

/// The limits at which a counter wraps.
struct CounterLimits {
    max: Option<f64>,
    min: f64,
}

impl CounterLimits {
    fn of(arguments: &Arguments<'_>) -> Result<Self, QueryError> {
        Ok(Self {
            max: arguments.optional_number(1, "maxValue")?,
            min: arguments.optional_number(2, "minValue")?.unwrap_or_default(),
        })
    }

    /// Returns the growth from one reading to the next; missing after a reset without a known
    /// limit.
    fn growth(&self, previous: f64, value: f64) -> f64 {
        if self.max.is_some_and(|max| value > max) {
            NULL
        } else if value >= previous {
            value - previous
        } else {
            self.max.map_or(NULL, |max| max - previous + value - self.min + 1.0)
        }
    }
}

fn non_negative(arguments: &Arguments<'_>) -> Lines {
    let wraps = CounterLimits::of(arguments)?;
    change_lines(arguments, "", |line| {
        from_previous(line, |previous, value| wraps.growth(previous, value))
    })
}

fn per_second(arguments: &Arguments<'_>) -> Lines {
    let wraps = CounterLimits::of(arguments)?;
    change_lines(arguments, "", |line| {
        let step = line.step as f64;
        from_previous(line, |previous, value| wraps.growth(previous, value) / step)
    })
}

fn integral(arguments: &Arguments<'_>) -> Lines {
    change_lines(arguments, "", |line| {
        let mut sum = 0.0;
        line.map_values(|value| {
            if value.is_nan() {
                return NULL;
            }
            sum += value;
            sum
        })
    })
}

/// Fills stretches of at most `limit` missing numbers between two known numbers, or after the last
/// known number, with the value that `fill` returns for a position in the stretch.
fn fill_gaps(
    mut line: Line,
    limit: usize,
    ends: bool,
    fill: impl Fn((f64, f64), usize, usize) -> f64,
) -> Line {
    let mut before: Option<usize> = None;
    for index in 0..=line.values.len() {
        let value = line.values.get(index).copied();
        if value.is_some_and(f64::is_nan) {
            continue;
        }
        if let Some(before) = before {
            let (first, missing) = (line.values[before], index - before - 1);
            if missing <= limit && (value.is_some() || ends) {
                let next = value.unwrap_or(first);
                for position in 1..=missing {
                    line.values[before + position] = fill((first, next), position, missing + 1);
                }
            }
        }
        before = Some(index);
    }
    line
}

fn keep_last(arguments: &Arguments<'_>) -> Lines {
    let limit = arguments.count(1, "limit", usize::MAX)?;
    change_lines(arguments, "", |line| fill_gaps(line, limit, true, |(first, _), _, _| first))
}

fn interpolate(arguments: &Arguments<'_>) -> Lines {
    let limit = arguments.count(1, "limit", usize::MAX)?;
    change_lines(arguments, "", |line| {
        fill_gaps(line, limit, false, |(first, next), position, count| {
            first + (next - first) * position as f64 / count as f64
        })
    })
}

fn transform_null(arguments: &Arguments<'_>) -> Lines {
    let default = arguments.optional_number(1, "default")?.unwrap_or_default();
    change_values(
        arguments,
        &format!(",{default}"),
        |value| {
            if value.is_nan() { default } else { value }
        },
    )
}

fn is_known(arguments: &Arguments<'_>) -> Lines {
    change_values(arguments, "", |value| f64::from(u8::from(!value.is_nan())))
}

fn changed(arguments: &Arguments<'_>) -> Lines {
    change_lines(arguments, "", |line| {
        let mut last = NULL;
        line.map_values(|value| {
            let is_other = !value.is_nan() && !last.is_nan() && value != last;
            if !value.is_nan() {
                last = value;
            }
            f64::from(u8::from(is_other))
        })
    })
}

fn delay(arguments: &Arguments<'_>) -> Lines {
    let steps = arguments.count(1, "steps", 0)?;
    change_lines(arguments, &format!(",{steps}"), |mut line| {
        let count = line.values.len();
        let missing = std::iter::repeat_n(NULL, steps.min(count));
        line.values = missing.chain(line.values).take(count).collect();
        line
    })
}

fn min_max(arguments: &Arguments<'_>) -> Lines {
    change_lines(arguments, "", |line| {
        let lowest = line.known_values().fold(f64::INFINITY, f64::min);
        let highest = line.known_values().fold(f64::NEG_INFINITY, f64::max);
        line.map_values(|value| match highest - lowest {
            0.0 if !value.is_nan() => 0.0,
            range => (value - lowest) / range,
        })
    })
}

fn without(arguments: &Arguments<'_>, suffix: &str, keep: impl Fn(f64) -> bool + Copy) -> Lines {
    change_values(arguments, suffix, |value| if keep(value) { value } else { NULL })
}

fn remove_above(arguments: &Arguments<'_>) -> Lines {
    let count_max = arguments.number(1, "n")?;
    without(arguments, &format!(", {count_max}"), |value| value <= count_max)
}

fn remove_below(arguments: &Arguments<'_>) -> Lines {
    let minimum = arguments.number(1, "n")?;
    without(arguments, &format!(", {minimum}"), |value| value >= minimum)
}

/// Changes the numbers of each line by a percentile of that line.
fn by_percentile(arguments: &Arguments<'_>, compute: impl Fn(f64, f64) -> f64) -> Lines {
    let percent = arguments.number(1, "n")?;
    let aggregation = Aggregation::Percentile(percent.clamp(0.0, 100.0));
    change_lines(arguments, &format!(", {percent}"), |line| {
        let border = aggregation.of_some(line.values.iter().copied());
        line.map_values(|value| compute(value, border))
    })
}

fn remove_above_percentile(arguments: &Arguments<'_>) -> Lines {
    by_percentile(arguments, |value, border| if value > border { NULL } else { value })
}

fn remove_below_percentile(arguments: &Arguments<'_>) -> Lines {
    by_percentile(arguments, |value, border| if value < border { NULL } else { value })
}

fn percentile(arguments: &Arguments<'_>) -> Lines {
    by_percentile(arguments, |_, border| border)
}
