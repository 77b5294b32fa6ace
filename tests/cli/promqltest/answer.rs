//! The comparison of an answer with the expectation of a script, by the rules of the runner in
//! Prometheus.

use regex::Regex;
use serde_json::Value;

use super::{
    notation::{Labels, SequenceItem, Series, parse_number},
    script::{Eval, EvalTime, Expected, ExpectedText},
};

/// The permitted relative difference of two numbers.
const EPSILON: f64 = 1e-6;

/// The status and the JSON of an answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

/// Returns the difference between an answer and the expectation, or `None` if they agree.
pub(crate) fn difference(eval: &Eval, answer: &Answer) -> Option<String> {
    compare(eval, answer).err()
}

fn compare(eval: &Eval, answer: &Answer) -> Result<(), String> {
    let expected = &eval.expected;
    let error = answer.body["error"].as_str().unwrap_or_default();
    match (&expected.fail, answer.status == 200) {
        (Some(_), true) => return Err(format!("did not fail: {}", answer.body["data"])),
        (Some(text), false) => {
            let is_expected = text.matches(error);
            return if is_expected {
                Ok(())
            } else {
                Err(format!("failed with other words: {error}"))
            };
        }
        (None, false) => return Err(format!("{}: {error}", answer.status)),
        (None, true) => {}
    }
    compare_notes(expected, &answer.body)?;
    let data = &answer.body["data"];
    let result = &data["result"];
    match (data["resultType"].as_str().unwrap_or_default(), eval.when) {
        ("scalar", _) => {
            let expected_value = expected.scalar.ok_or_else(|| format!("a scalar: {result}"))?;
            check_number(expected_value, &result[1])
        }
        ("string", _) => {
            let expected_value =
                expected.string.as_deref().ok_or_else(|| format!("a text: {result}"))?;
            let found = result[1].as_str().unwrap_or_default();
            if found == expected_value {
                Ok(())
            } else {
                Err(format!("text {found:?}, not {expected_value:?}"))
            }
        }
        _ if expected.scalar.is_some() || expected.string.is_some() => {
            Err(format!("neither scalar nor text: {data}"))
        }
        ("vector", _) => compare_vectors(expected, result),
        ("matrix", EvalTime::Range { start, step, .. }) => {
            compare_matrices(expected, start, step, result)
        }
        ("matrix", EvalTime::Instant(_)) => {
            let (start, step) = expected.range.ok_or_else(|| format!("a matrix: {result}"))?;
            compare_matrices(expected, start, step, result)
        }
        (other, _) => Err(format!("type {other:?}")),
    }
}

impl ExpectedText {
    fn matches(&self, found: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Exact(text) => text == found,
            Self::Pattern(pattern) => Regex::new(pattern).unwrap().is_match(found),
        }
    }
}

/// Compares warnings and infos.
fn compare_notes(expected: &Expected, body: &Value) -> Result<(), String> {
    let checks = [
        ("warnings", &expected.warnings, expected.no_warnings),
        ("infos", &expected.infos, expected.no_infos),
    ];
    for (name, expected_value, none) in checks {
        let found: Vec<_> = body[name].as_array().into_iter().flatten().collect();
        let texts: Vec<_> = found.iter().filter_map(|text| text.as_str()).collect();
        if none && !texts.is_empty() {
            return Err(format!("{name}: {texts:?}"));
        }
        for text in expected_value {
            if !texts.iter().any(|found| text.matches(found)) {
                return Err(format!("{name} {texts:?} lack {text:?}"));
            }
        }
    }
    Ok(())
}

fn compare_vectors(expected: &Expected, result: &Value) -> Result<(), String> {
    let mut remaining: Vec<_> = expected.series.iter().enumerate().collect();
    for (position, sample) in result.as_array().into_iter().flatten().enumerate() {
        let labels = labels(&sample["metric"]);
        let found = remaining.iter().position(|(_, series)| series.labels == labels);
        let found = found.ok_or_else(|| format!("not expected: {sample}"))?;
        let (expected_value, series) = remaining.remove(found);
        if expected.ordered && expected_value != position {
            return Err(format!(
                "{} is at position {position}, not {expected_value}",
                sample["metric"]
            ));
        }
        let in_series = |cause: String| format!("{}: {cause}", sample["metric"]);
        match series.items.first() {
            Some(SequenceItem::Value(value)) => {
                check_number(*value, &sample["value"][1]).map_err(in_series)?;
            }
            Some(SequenceItem::Histogram(histogram)) => {
                histogram.check(&sample["histogram"][1], almost_equal).map_err(in_series)?;
            }
            other => return Err(in_series(format!("{sample} for {other:?}"))),
        }
    }
    check_missing_series(&remaining.iter().map(|(_, series)| *series).collect::<Vec<_>>())
}

fn compare_matrices(
    expected: &Expected,
    start: i64,
    step: i64,
    result: &Value,
) -> Result<(), String> {
    let mut remaining: Vec<_> = expected.series.iter().collect();
    for found in result.as_array().into_iter().flatten() {
        let labels = labels(&found["metric"]);
        let index = remaining.iter().position(|series| series.labels == labels);
        let series = remaining.remove(index.ok_or_else(|| format!("not expected: {found}"))?);
        let in_series = |cause: String| format!("{}: {cause}", found["metric"]);
        compare_points(series, start, step, found).map_err(in_series)?;
    }
    check_missing_series(&remaining)
}

fn compare_points(series: &Series, start: i64, step: i64, found: &Value) -> Result<(), String> {
    let list = |name: &str| found[name].as_array().into_iter().flatten();
    let (mut values, mut histograms) = (list("values"), list("histograms"));
    for (index, item) in series.items.iter().enumerate() {
        let at = start + index as i64 * step;
        let (point, histogram) = match item {
            SequenceItem::Omitted => continue,
            SequenceItem::Histogram(histogram) => (histograms.next(), Some(histogram)),
            SequenceItem::Value(_) => (values.next(), None),
        };
        let point = point.ok_or_else(|| format!("nothing at {at} ms, not {item:?}"))?;
        let found_at = (point[0].as_f64().unwrap_or(f64::NAN) * 1000.0).round() as i64;
        if found_at != at {
            return Err(format!("{point} instead of {item:?} at {at} ms"));
        }
        match (item, histogram) {
            (_, Some(histogram)) => histogram.check(&point[1], almost_equal),
            (SequenceItem::Value(value), None) => check_number(*value, &point[1]),
            _ => Ok(()),
        }
        .map_err(|cause| format!("at {at} ms: {cause}"))?;
    }
    let more = values.next().or_else(|| histograms.next());
    more.map_or(Ok(()), |more| Err(format!("not expected: {more}")))
}

fn check_missing_series(remaining: &[&Series]) -> Result<(), String> {
    // A series without expected values may be absent.
    let first =
        remaining.iter().find(|series| series.items.iter().any(|p| *p != SequenceItem::Omitted));
    first.map_or(Ok(()), |series| Err(format!("lacks {:?} {:?}", series.labels, series.items)))
}

fn labels(metric: &Value) -> Labels {
    let all = metric.as_object().into_iter().flatten();
    all.map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned())).collect()
}

fn check_number(expected_value: f64, found: &Value) -> Result<(), String> {
    let text = found.as_str().unwrap_or_default();
    let value = parse_number(text).ok_or_else(|| format!("{found} is not a number"))?;
    if almost_equal(expected_value, value) {
        Ok(())
    } else {
        Err(format!("{text}, not {expected_value}"))
    }
}

/// Returns true if two numbers are equal or differ by a small fraction.
fn almost_equal(left: f64, right: f64) -> bool {
    if left == right || (left.is_nan() && right.is_nan()) {
        return true;
    }
    let (sum, distance) = (left.abs() + right.abs(), (left - right).abs());
    if left == 0.0 || right == 0.0 || sum < f64::MIN_POSITIVE {
        return distance < EPSILON * f64::MIN_POSITIVE;
    }
    distance / sum.min(f64::MAX) < EPSILON
}

#[test]
fn numbers_may_differ_by_a_millionth() {
    for (left, right, expected) in [
        (1.0, 1.0, true),
        (1.0, 1.000_001, true),
        (1.0, 1.000_01, false),
        (f64::NAN, f64::NAN, true),
        (f64::NAN, 1.0, false),
        (f64::INFINITY, f64::INFINITY, true),
        (f64::INFINITY, f64::NEG_INFINITY, false),
        (0.0, 1e-9, false),
    ] {
        assert_eq!(almost_equal(left, right), expected, "{left} {right}");
    }
}
