//! Series and their values in the notation of Prometheus' tests: `up{job="a"}`, `0 1+2x5 _ stale`.
//!
//! Must never know: what the series are for.

use anyhow::{Context, bail};

use crate::{
    model::{METRIC_TAG, STALE_MARKER},
    query::{Labels, MatchOperator, PromqlLimits, series_matchers},
};

/// Values of one series, at most.
const VALUES_MAX: usize = 100_000;

/// The labels of a series; an empty text or `{}` has none.
pub(super) fn labels(text: &str, limits: &PromqlLimits<'_>) -> anyhow::Result<Labels> {
    if matches!(text.trim(), "" | "{}") {
        return Ok(Labels::default());
    }
    let sets = series_matchers(text, limits).with_context(|| format!("read the series {text}"))?;
    let [matchers] = &sets[..] else { bail!("{text} is no series") };
    let mut pairs = Vec::new();
    for matcher in matchers {
        let MatchOperator::Equal(value) = &matcher.operator else {
            bail!("{text} is no series: use = only")
        };
        pairs.push((matcher.tag.as_str().into(), value.as_str().into()));
    }
    Ok(Labels::new(pairs))
}

/// The values of a series, one for each interval; `None` where there is none.
pub(super) fn values(text: &str) -> anyhow::Result<Vec<Option<f64>>> {
    let mut values = Vec::new();
    for word in text.split_whitespace() {
        let run = run(word).with_context(|| format!("read the values {word:?}"))?;
        values.extend(run);
        if values.len() > VALUES_MAX {
            bail!("there are more than {VALUES_MAX} values");
        }
    }
    Ok(values)
}

/// One word: a value, or several in steps.
fn run(word: &str) -> anyhow::Result<Vec<Option<f64>>> {
    let (first, times) = match word.rsplit_once('x') {
        // As in Prometheus, 0x10 is no number of base 16 here.
        Some((first, times)) if !first.is_empty() => (first, Some(times)),
        Some(_) | None => (word, None),
    };
    let times: Option<usize> = times.map(str::parse).transpose().context("no number of times")?;
    if times.is_some_and(|times| times > VALUES_MAX) {
        bail!("more than {VALUES_MAX} times");
    }
    match (first, times) {
        ("_", times) => return Ok(vec![None; times.unwrap_or(1)]),
        ("stale", None) => return Ok(vec![Some(STALE_MARKER)]),
        _ => {}
    }
    let Some(times) = times else { return Ok(vec![Some(number(first)?)]) };
    let (start, step) = match sign(first) {
        Some(at) => {
            let (start, step) = first.split_at(at);
            (number(start)?, number(step)?)
        }
        None => (number(first)?, 0.0),
    };
    Ok((0..=times).map(|count| Some(start + step * count as f64)).collect())
}

/// Where the step begins: at the last sign that is no exponent's.
fn sign(text: &str) -> Option<usize> {
    let signs = text.char_indices().skip(1).filter(|(_, c)| matches!(c, '+' | '-'));
    let is_exponent = |at: usize| text.get(..at).is_some_and(|before| before.ends_with(['e', 'E']));
    signs.map(|(at, _)| at).filter(|at| !is_exponent(*at)).last()
}

fn number(text: &str) -> anyhow::Result<f64> {
    text.trim_start_matches('+').parse().with_context(|| format!("{text:?} is no number"))
}

/// As it is written in expectations: with the metric's name.
pub(super) fn shown(labels: &Labels) -> String {
    if labels.iter().all(|(name, _)| name == METRIC_TAG) && labels.metric().is_empty() {
        return "{}".to_owned();
    }
    labels.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_prometheus_own_documentation() {
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
