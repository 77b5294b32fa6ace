//! `granary query promql`: an expression at one time or over a range.

use std::collections::BTreeMap;

use anyhow::bail;
use clap::Args;
use serde::Deserialize;
use serde_json::Value;

use super::{tables, view::Times};
use crate::{
    cli::{
        http::{Daemon, read},
        table::{name, short},
    },
    clock::{Clock, SystemClock},
    model::{Kind, Span, UnixMillis},
    query::{ChartAnswer, ChartSeries, SeriesEntry},
};

/// The approximate number of points of a range without --step.
const POINTS: i64 = 60;
/// The maximum number of points of a range, equal to the daemon's maximum.
const POINTS_MAX: i64 = 11_000;
/// The default steps, in seconds.
const STEPS: [i64; 14] = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 6 * 3600];

#[derive(Debug, Args)]
pub(super) struct PromqlArgs {
    /// The expression
    expression: String,
    /// Duration up to --at, such as 1h, 14d or 1y [default: one time only]
    #[arg(long)]
    range: Option<Span>,
    /// Time between two points of a range, such as 15s or 5m [default: about 60 points]
    #[arg(long, requires = "range")]
    step: Option<Span>,
    /// Time: 2026-11-21T08:00:00Z, 2026-11-21 or Unix seconds [default: now]
    #[arg(long, value_parser = UnixMillis::parse)]
    at: Option<UnixMillis>,
    /// Time zone of displayed times, such as Europe/Berlin or +02:00
    #[arg(long, allow_hyphen_values = true)]
    tz: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Answer {
    data: Data,
    #[serde(default)]
    warnings: Vec<String>,
    #[serde(default)]
    infos: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data {
    result_type: String,
    result: Value,
}

/// A series of an instant vector or of a matrix.
#[derive(Debug, Deserialize)]
struct Series {
    metric: BTreeMap<String, String>,
    value: Option<(f64, String)>,
    #[serde(default)]
    values: Vec<(f64, String)>,
}

/// The times of a range query.
struct RangeSteps {
    start: i64,
    end: i64,
    step: i64,
}

impl PromqlArgs {
    /// Queries the daemon, and returns its answer and, for a range, the chart.
    pub(super) fn fetch(&self, daemon: &Daemon) -> anyhow::Result<(String, Option<ChartAnswer>)> {
        let mut pairs = vec![("query", self.expression.clone())];
        let seconds = |ms: i64| format!("{}.{:03}", ms.div_euclid(1000), ms.rem_euclid(1000));
        let Some(range_steps) = self.range_steps()? else {
            pairs.extend(self.at.map(|at| ("time", seconds(at.0))));
            return Ok((daemon.get("query", &pairs)?, None));
        };
        pairs.push(("start", seconds(range_steps.start)));
        pairs.push(("end", seconds(range_steps.end)));
        pairs.push(("step", seconds(range_steps.step)));
        let body = daemon.get("query_range", &pairs)?;
        let chart = self.chart(&body, &range_steps)?;
        Ok((body, Some(chart)))
    }

    fn range_steps(&self) -> anyhow::Result<Option<RangeSteps>> {
        let Some(range) = self.range else { return Ok(None) };
        let end = self.at.unwrap_or_else(|| SystemClock.now());
        let length = end.0 - range.before(end).0;
        let step = match self.step {
            Some(Span::Fixed(ms)) => ms,
            Some(Span::Months(_)) => bail!("--step must be in weeks or smaller units"),
            None => {
                let wanted = length / POINTS;
                let found = STEPS.into_iter().map(|seconds| seconds * 1000);
                let day = 86_400_000;
                found.clone().find(|ms| *ms >= wanted).unwrap_or((wanted / day + 1) * day)
            }
        };
        if length / step >= POINTS_MAX {
            bail!("{} points exceed the limit of {POINTS_MAX}: set a longer --step", length / step);
        }
        // The last point is at the end of the range, so that new series have points.
        let end = end.0.div_euclid(1000) * 1000;
        Ok(Some(RangeSteps { start: end - length / step * step, end, step }))
    }

    fn chart(&self, body: &str, range_steps: &RangeSteps) -> anyhow::Result<ChartAnswer> {
        let answer: Answer = read(body)?;
        let all: Vec<Series> = serde_json::from_value(answer.data.result)?;
        let charted = all.into_iter().map(|series| {
            let values: BTreeMap<i64, f64> = series
                .values
                .iter()
                .filter_map(|(at, text)| Some((ms(*at), number(text)?)))
                .collect();
            let times = (0..=(range_steps.end - range_steps.start) / range_steps.step)
                .map(|i| range_steps.start + i * range_steps.step);
            let points = times.map(|at| (at, values.get(&at).copied())).collect();
            ChartSeries {
                series: entry(series.metric),
                merged: None,
                display: String::new(),
                points,
                distribution: None,
            }
        });
        let notes = answer.warnings.into_iter().chain(answer.infos).collect();
        Ok(ChartAnswer {
            resolution: Span::Fixed(range_steps.step).to_string(),
            time_zone: self.tz.clone(),
            start: range_steps.start,
            end: range_steps.end,
            incomplete_from: None,
            series: charted.collect(),
            notes,
        })
    }

    /// Returns the answer at one time as a table.
    pub(super) fn table(&self, body: &str) -> anyhow::Result<String> {
        let answer: Answer = read(body)?;
        let Data { result_type, result } = answer.data;
        let mut rows: Vec<[String; 3]> = Vec::new();
        let written = |text: &str| number(text).map_or_else(|| text.to_owned(), short);
        if matches!(&*result_type, "scalar" | "string") {
            let (at, text): (f64, String) = serde_json::from_value(result)?;
            let value_text = if result_type == "scalar" { written(&text) } else { text };
            rows.push([result_type, ms(at).to_string(), value_text]);
        } else {
            let all: Vec<Series> = serde_json::from_value(result)?;
            for series in all {
                let entry = entry(series.metric);
                let values = series.value.into_iter().chain(series.values);
                rows.extend(
                    values.map(|(at, text)| [name(&entry), ms(at).to_string(), written(&text)]),
                );
            }
        }
        let starts: Vec<i64> = rows.iter().filter_map(|row| row[1].parse().ok()).collect();
        let times = Times::new(self.tz.as_deref(), starts.iter().copied());
        for (row, at) in rows.iter_mut().zip(starts) {
            row[1] = times.text(at);
        }
        let notes = answer.warnings.into_iter().chain(answer.infos);
        let notes: Vec<_> = notes.map(|note| format!("note: {note}")).collect();
        Ok(tables::values(&format!("time ({})", times.zone_name), rows, &notes))
    }
}

/// Converts labels to a series; expressions have no unit.
fn entry(mut labels: BTreeMap<String, String>) -> SeriesEntry {
    let metric = labels.remove("__name__").unwrap_or_default();
    SeriesEntry { metric, tags: labels, kind: Kind::Gauge, unit: String::new() }
}

fn ms(seconds: f64) -> i64 {
    (seconds * 1000.0).round() as i64
}

/// Parses a number in Prometheus' format, including `NaN`, `+Inf` and `-Inf`.
fn number(text: &str) -> Option<f64> {
    text.parse().ok()
}
