//! `GET /federate`: the newest sample of each matching series in the text format, for Prometheus
//! servers that scrape it (prometheus.io/docs/prometheus/latest/federation).
//!
//! Must never know: how samples are read.

use std::collections::BTreeSet;

use actix_web::{
    HttpRequest, HttpResponse,
    body::BoxBody,
    http::header,
    web::{self, Bytes},
};

use super::{
    fault::Fault,
    params::Params,
    query::fault,
    receive::{Received, run_in_turn},
    series::SELECTORS_MAX,
    text_names::{NameFormat, push_escaped},
};
use crate::{
    api::{
        QueryParts,
        answer::{self, pulled::PulledBody, slow::SlowReaders},
    },
    model::{Kind, METRIC_TAG, with_noun},
    query::{self, Budget, SeriesReadings, newest_readings, series_matchers},
};

/// Scrapers attach their own `instance` to series without this label, unless the label is present
/// and empty.
const INSTANCE: &str = "instance";

pub(super) async fn federate((request, _, parts): Received) -> HttpResponse {
    let metrics = parts.metrics.clone();
    metrics.queries.with_label_values(&["federate"]).inc();
    let slow = SlowReaders::new(&metrics, parts.client_timeout);
    let names = name_format(&request);
    let found = match Params::read(request.query_string(), b"") {
        Ok(params) => exposition(params, names, parts).await,
        Err(fault) => Err(fault),
    };
    match found {
        Ok((text, memory)) => {
            let mut response = HttpResponse::Ok();
            response.content_type(names.content_type());
            let mut text = Some(Bytes::from(text));
            let body = PulledBody::new(
                move || {
                    let rest = text.as_mut()?;
                    let next = rest.split_to(rest.len().min(answer::slow::CHUNK_BYTES));
                    (!next.is_empty()).then_some(next)
                },
                memory,
                slow,
            );
            response.message_body(BoxBody::new(body)).unwrap_or_else(HttpResponse::from_error)
        }
        Err(fault) => answer::count_refusal(&metrics, fault.outcome(), fault.text_response()),
    }
}

/// Returns the form of names that the scraper reads.
fn name_format(request: &HttpRequest) -> NameFormat {
    let accept = request.headers().get(header::ACCEPT).and_then(|value| value.to_str().ok());
    NameFormat::from_accept(accept.unwrap_or_default())
}

async fn exposition(
    params: Params,
    format: NameFormat,
    parts: web::Data<QueryParts>,
) -> Result<(String, Option<query::Reservation>), Fault> {
    let limit = params.timeout(parts.promql.get().timeout)?;
    run_in_turn(parts, limit, move |parts, budget| {
        query::run_with_retries(
            budget,
            || write(&params, format, parts, budget),
            Fault::is_transient,
        )
    })
    .await
}

fn write(
    params: &Params,
    format: NameFormat,
    parts: &QueryParts,
    budget: &Budget,
) -> Result<String, Fault> {
    let limits = parts.promql.get().limits(budget);
    let selectors: BTreeSet<_> = params.all("match[]").collect();
    if selectors.is_empty() {
        return Err(Fault::bad_data(
            "no match[] parameter provided: add match[]=SELECTOR, such as match[]=up",
        ));
    }
    if selectors.len() > SELECTORS_MAX {
        return Err(Fault::bad_data(format!(
            "{} different match[] exceed the limit of {SELECTORS_MAX}: combine them",
            selectors.len()
        )));
    }
    let mut sets = Vec::new();
    for selector in selectors {
        let alternatives = series_matchers(selector, &limits)
            .map_err(|cause| Fault::parameter("match[]", fault(cause)))?;
        sets.extend(alternatives);
    }
    let lookback_ms = parts.promql.get().lookback.as_millis() as i64;
    let now = parts.clock.moment();
    let mut text = Exposition { out: String::new(), format, metric: None, left_out: 0 };
    let mut reserved = 0;
    let mut visit = |series: SeriesReadings| {
        text.push(&series);
        let growth = text.out.capacity() - reserved;
        reserved += growth;
        limits.reserve(growth)
    };
    let store = &parts.store;
    newest_readings(store, &sets, lookback_ms, &limits, now.clock, &mut visit).map_err(fault)?;
    text.finish();
    Ok(text.out)
}

/// The text of series in order of their metrics.
struct Exposition {
    out: String,
    format: NameFormat,
    /// The metric whose type was written last.
    metric: Option<String>,
    /// The number of series of native histograms, for which the text format has no form.
    left_out: usize,
}

impl Exposition {
    /// Reports the series that are left out.
    fn finish(&mut self) {
        if self.left_out > 0 {
            let series = with_noun(self.left_out as u64, "series");
            self.out.extend([
                "# ",
                &series,
                " of native histograms left out: read them with remote read\n",
            ]);
        }
    }

    fn push(&mut self, series: &SeriesReadings) {
        self.left_out += usize::from(!series.histograms.is_empty());
        let Some((at, value)) = series.readings.last() else { return };
        let metric = series.labels.metric();
        let out = &mut self.out;
        if self.metric.as_deref() != Some(metric) {
            let word = match series.kind {
                Kind::Counter => "counter",
                Kind::Gauge
                | Kind::Delta
                | Kind::Histogram
                | Kind::GaugeHistogram
                | Kind::DeltaHistogram => "gauge",
            };
            out.push_str("# TYPE ");
            self.format.push_metric(metric, out);
            out.push(' ');
            out.push_str(word);
            out.push('\n');
            self.metric = Some(metric.to_owned());
        }
        let mut separator = self.format.open(metric, out);
        let tags = series.labels.iter().filter(|(name, _)| *name != METRIC_TAG);
        let instance = series.labels.get(INSTANCE).is_empty().then_some((INSTANCE, "")).into_iter();
        for (name, value) in tags.chain(instance) {
            out.push(separator);
            separator = ',';
            self.format.push_label(name, out);
            out.push_str("=\"");
            push_escaped(value, out);
            out.push('"');
        }
        out.push_str("} ");
        let number = match *value {
            value if value.is_nan() => "NaN".to_owned(),
            f64::INFINITY => "+Inf".to_owned(),
            f64::NEG_INFINITY => "-Inf".to_owned(),
            value => value.to_string(),
        };
        for part in [&number, " ", &at.to_string(), "\n"] {
            out.push_str(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::Labels;

    /// The labels, the kind and the value of a series.
    type LabelsKindValue<'a> = (&'a [(&'a str, &'a str)], Kind, f64);

    fn text(format: NameFormat, all: &[LabelsKindValue<'_>]) -> String {
        let mut text = Exposition { out: String::new(), format, metric: None, left_out: 0 };
        for (labels, kind, value) in all {
            let pairs = labels.iter().map(|(name, value)| ((*name).into(), (*value).into()));
            let labels = Labels::new(pairs.collect());
            let (readings, histograms) = (vec![(1500, *value)], Vec::new());
            text.push(&SeriesReadings { labels, kind: *kind, readings, histograms });
        }
        text.out
    }

    #[test]
    fn series_are_grouped_by_metric_with_its_type() {
        let all: &[LabelsKindValue<'_>] = &[
            (&[("__name__", "a_total"), ("host", "x\"y\\\n")], Kind::Counter, 2.0),
            (&[("__name__", "a_total"), ("instance", "z")], Kind::Counter, 0.5),
            (&[("__name__", "b.c"), ("service.name", "s")], Kind::Gauge, f64::NAN),
        ];
        assert_eq!(
            text(NameFormat::Underscores, all),
            "# TYPE a_total counter\n\
             a_total{host=\"x\\\"y\\\\\\n\",instance=\"\"} 2 1500\n\
             a_total{instance=\"z\"} 0.5 1500\n\
             # TYPE b_c gauge\nb_c{service_name=\"s\",instance=\"\"} NaN 1500\n"
        );
        let quoted =
            "# TYPE \"b.c\" gauge\n{\"b.c\",\"service.name\"=\"s\",instance=\"\"} NaN 1500\n";
        assert!(text(NameFormat::Utf8, all).ends_with(quoted), "{}", text(NameFormat::Utf8, all));
    }
}
