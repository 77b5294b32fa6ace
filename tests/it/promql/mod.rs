//! PromQL over a real store: a fixture with samples and queries.

mod answers;
mod info;
mod kinds;
mod memory;
mod moments;
mod notes;
mod peer_parser;
mod query_cache;
mod semantics;
mod shards;
mod windows;

use granary::{
    model::{Kind, SeriesId, UnixMillis},
    query::{
        Budget, ExpressionLimits, PromqlAnswer, PromqlRequest, PromqlValue, QueryError, promql,
    },
    store::{Appender, Store},
};

use crate::setup::{self, DAY, MINUTE, samples, send, series};

/// The start of a day in 2026; samples begin here.
pub(crate) const DAY0: i64 = 1_795_219_200_000;
const NOW: UnixMillis = UnixMillis(DAY0 + DAY);

const LIMITS: ExpressionLimits<'static> = ExpressionLimits {
    series_max: 100,
    points_max: 1_000_000,
    steps_max: 11_000,
    query_bytes_max: 65_536,
    regex_bytes_max: 1 << 20,
    budget: &Budget::UNLIMITED,
};

pub(crate) struct Fixture {
    store: Store,
    appender: Appender,
    pub(crate) delayed_name_removal: bool,
    _dir: tempfile::TempDir,
}

pub(crate) fn fixture() -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let (store, appender) = setup::open(dir.path(), NOW);
    Fixture { store, appender, delayed_name_removal: false, _dir: dir }
}

impl Fixture {
    pub(crate) fn define(&mut self, metric: &str, tags: &[(&str, &str)], kind: Kind) -> SeriesId {
        setup::define(&mut self.appender, &[series(metric, tags, kind)], NOW)[0]
    }

    /// Sends samples of one series, `every` milliseconds apart from `DAY0` on, until `value`
    /// returns none.
    pub(crate) fn fill(&mut self, id: SeriesId, every: i64, value: impl Fn(i64) -> Option<f64>) {
        self.fill_from(id, 0, every, value);
    }

    /// Sends samples of one series, `every` milliseconds apart from `DAY0 + first` on, until
    /// `value` returns none.
    pub(crate) fn fill_from(
        &mut self,
        id: SeriesId,
        first: i64,
        every: i64,
        value: impl Fn(i64) -> Option<f64>,
    ) {
        let points = (0..).map_while(|i| Some((DAY0 + first + i * every, value(i)?)));
        send(&mut self.appender, samples(id, points), NOW);
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    fn evaluate(
        &self,
        query: &str,
        start: i64,
        end: i64,
        step: i64,
    ) -> Result<PromqlAnswer, QueryError> {
        let delayed_name_removal = self.delayed_name_removal;
        let request = PromqlRequest { delayed_name_removal, ..request(query, start, end, step) };
        promql(&self.store, &request, &LIMITS, NOW)
    }

    /// Returns the answer of an instant query in one line: labels and values.
    pub(crate) fn instant(&self, query: &str, at: i64) -> String {
        match self.evaluate(query, at, at, 0) {
            Ok(answer) => format_value(&answer.value),
            Err(error) => format!("error: {error}"),
        }
    }

    /// Returns the warnings and infos of a range query; a step of 0 is an instant query.
    pub(crate) fn notes(&self, query: &str, start: i64, end: i64, step: i64) -> String {
        match self.evaluate(query, start, end, step) {
            Ok(answer) => [answer.warnings, answer.infos].concat().join("; "),
            Err(error) => format!("error: {error}"),
        }
    }

    pub(crate) fn range(&self, query: &str, start: i64, end: i64, step: i64) -> String {
        match self.evaluate(query, start, end, step) {
            Ok(answer) => format_value(&answer.value),
            Err(error) => format!("error: {error}"),
        }
    }
}

/// Returns a query from `start` to `end`, relative to the first samples.
fn request(query: &str, start: i64, end: i64, step: i64) -> PromqlRequest {
    PromqlRequest {
        query: query.to_owned(),
        start: UnixMillis(DAY0 + start),
        end: UnixMillis(DAY0 + end),
        step_ms: step,
        lookback_ms: 5 * MINUTE,
        delayed_name_removal: false,
    }
}

fn format_value(value: &PromqlValue) -> String {
    match value {
        PromqlValue::Scalar(_, number) => number.to_string(),
        PromqlValue::String(_, text) => text.clone(),
        PromqlValue::Vector(samples) => {
            let samples =
                samples.iter().map(|sample| format!("{} {}", sample.labels, sample.value));
            samples.collect::<Vec<_>>().join("; ")
        }
        PromqlValue::Matrix(series) => {
            let series = series.iter().map(|line| {
                let points = line.points.iter().map(|(_, value)| format!(" {value}"));
                format!("{}{}", line.labels, points.collect::<String>())
            });
            series.collect::<Vec<_>>().join("; ")
        }
    }
}
