//! Series and values in the notation of Prometheus' tests: `up{job="a"}`, `0 1+2x5 _ stale`.
//!
//! Must never know: what the series are for.

use anyhow::{Context, bail};

use crate::{
    model::{METRIC_TAG, STALE_MARKER},
    query::{ExpressionLimits, Labels, MatchOperator, series_matchers},
};

/// The maximum number of values of a series.
const VALUES_MAX: usize = 100_000;

/// Parses the labels of a series; an empty text or `{}` has no labels.
pub(super) fn labels(text: &str, limits: &ExpressionLimits<'_>) -> anyhow::Result<Labels> {
    if matches!(text.trim(), "" | "{}") {
        return Ok(Labels::default());
    }
    let sets = series_matchers(text, limits).with_context(|| format!("read the series {text}"))?;
    let [matchers] = &sets[..] else { bail!("{text} is not a series") };
    let mut pairs = Vec::new();
    for matcher in matchers {
        let MatchOperator::Equal(value) = &matcher.operator else {
            bail!("{text} is not a series: use only =")
        };
        pairs.push((matcher.tag.as_str().into(), value.as_str().into()));
    }
    Ok(Labels::new(pairs))
}

/// Parses the values of a series, one per interval; `None` is a missing value.
pub(super) fn values(text: &str) -> anyhow::Result<Vec<Option<f64>>> {
    let mut values = Vec::new();
    for word in text.split_whitespace() {
        let expanded = expand(word).with_context(|| format!("read the values {word:?}"))?;
        values.extend(expanded);
        if values.len() > VALUES_MAX {
            bail!("more than {VALUES_MAX} values");
        }
    }
    Ok(values)
}

/// Parses a word: a value, or several values with a step.
fn expand(word: &str) -> anyhow::Result<Vec<Option<f64>>> {
    let (first, times) = match word.rsplit_once('x') {
        // As in Prometheus, 0x10 is not a hexadecimal number here.
        Some((first, times)) if !first.is_empty() => (first, Some(times)),
        Some(_) | None => (word, None),
    };
    let times: Option<usize> =
        times.map(str::parse).transpose().context("the number of repetitions is invalid")?;
    if times.is_some_and(|times| times > VALUES_MAX) {
        bail!("more than {VALUES_MAX} repetitions");
    }
    match (first, times) {
        ("_", times) => return Ok(vec![None; times.unwrap_or(1)]),
        ("stale", None) => return Ok(vec![Some(STALE_MARKER)]),
        _ => {}
    }
    let Some(times) = times else { return Ok(vec![Some(number(first)?)]) };
    let (start, step) = match step_start(first) {
        Some(at) => {
            let (start, step) = first.split_at(at);
            (number(start)?, number(step)?)
        }
        None => (number(first)?, 0.0),
    };
    Ok((0..=times).map(|count| Some(start + step * count as f64)).collect())
}

/// Returns the start of the step: the last sign that does not belong to an exponent.
fn step_start(text: &str) -> Option<usize> {
    let signs = text.char_indices().skip(1).filter(|(_, c)| matches!(c, '+' | '-'));
    let is_exponent = |at: usize| text.get(..at).is_some_and(|before| before.ends_with(['e', 'E']));
    signs.map(|(at, _)| at).filter(|at| !is_exponent(*at)).last()
}

fn number(text: &str) -> anyhow::Result<f64> {
    text.trim_start_matches('+').parse().with_context(|| format!("{text:?} is not a number"))
}

/// Formats labels as expectations write them: with the metric's name.
pub(super) fn format_labels(labels: &Labels) -> String {
    if labels.iter().all(|(name, _)| name == METRIC_TAG) && labels.metric().is_empty() {
        return "{}".to_owned();
    }
    labels.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_match_the_examples_in_prometheus_documentation() {
        let check = |text: &str, expected: &[f64]| {
            let found: Vec<_> = values(text).unwrap().into_iter().flatten().collect();
            assert_eq!(found, expected, "{text}");
        };
        check("-2+4x3", &[-2.0, 2.0, 6.0, 10.0]);
        check("1-2x4", &[1.0, -1.0, -3.0, -5.0, -7.0]);
        check("1x4", &[1.0; 5]);
        check("0x10", &[0.0; 11]);
        check("1 2 3e2 -4", &[1.0, 2.0, 300.0, -4.0]);
        check("1e-1+1e+1x1", &[0.1, 10.1]);
        assert_eq!(values("1 _x3 2 _").unwrap(), [Some(1.0), None, None, None, Some(2.0), None]);
        assert!(crate::model::is_stale_marker(values("stale").unwrap()[0].unwrap()));
        assert!(values("NaN Inf").unwrap()[0].unwrap().is_nan());
        for text in ["a", "1x", "1+x5", "1x1000000", "_x9999999"] {
            assert!(values(text).is_err(), "{text}");
        }
    }
}
