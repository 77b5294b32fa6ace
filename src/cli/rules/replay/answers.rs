//! The daemon's answers to all expressions of a group, for several evaluations at a time.
//!
//! Must never know: the states of alerts.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::{
    alerts::{Action, ExpressionResult, RuleGroup},
    cli::http::{Daemon, read},
    model::UnixMillis,
    query::{Labels, VectorSample},
};

/// Samples by expression and time.
pub(super) struct Answers(BTreeMap<String, BTreeMap<i64, Vec<VectorSample>>>);

#[derive(Debug, Deserialize)]
struct Answer {
    data: Data,
}

#[derive(Debug, Deserialize)]
struct Data {
    result: Vec<Series>,
}

#[derive(Debug, Deserialize)]
struct Series {
    #[serde(default)]
    metric: BTreeMap<String, String>,
    values: Vec<(f64, String)>,
}

impl Answers {
    /// Fetches the values of all expressions of a group for `count` evaluations.
    pub(super) fn fetch(
        daemon: &Daemon,
        group: &RuleGroup,
        (from, count, step_ms): (UnixMillis, i64, i64),
    ) -> anyhow::Result<Self> {
        let seconds =
            |at: UnixMillis| format!("{}.{:03}", at.0.div_euclid(1000), at.0.rem_euclid(1000));
        let start = from.minus(group.query_offset_ms);
        let end = start.plus((count - 1) * step_ms);
        let mut all = BTreeMap::new();
        for expression in expressions(group) {
            let pairs = [
                ("query", expression.to_owned()),
                ("start", seconds(start)),
                ("end", seconds(end)),
                ("step", seconds(UnixMillis(step_ms))),
            ];
            let Answer { data } = read(&daemon.get("query_range", &pairs)?)?;
            let mut by_time: BTreeMap<i64, Vec<VectorSample>> = BTreeMap::new();
            for Series { metric, values } in data.result {
                let labels = metric.into_iter();
                let labels = Labels::new(
                    labels
                        .map(|(name, value)| (name.as_str().into(), value.as_str().into()))
                        .collect(),
                );
                for (seconds, value) in values {
                    let at = (seconds * 1000.0).round() as i64;
                    let value = value.parse()?;
                    let sample =
                        VectorSample { labels: labels.clone(), at, value, histogram: None };
                    by_time.entry(at).or_default().push(sample);
                }
            }
            all.insert(expression.to_owned(), by_time);
        }
        Ok(Self(all))
    }

    /// Returns the series of an expression at a time.
    pub(super) fn vector(&self, expression: &str, at: UnixMillis) -> ExpressionResult {
        let by_time =
            self.0.get(expression).ok_or_else(|| format!("{expression} was not fetched"))?;
        Ok(by_time.get(&at.0).cloned().unwrap_or_default())
    }
}

/// Returns the distinct expressions of the group's alerts.
fn expressions(group: &RuleGroup) -> BTreeSet<&str> {
    let mut all = BTreeSet::new();
    for rule in &group.rules {
        all.insert(rule.expression.as_str());
        if let Action::Alert(policy) = &rule.action {
            all.extend(
                [&policy.measured, &policy.recover].into_iter().flatten().map(String::as_str),
            );
        }
    }
    all
}
