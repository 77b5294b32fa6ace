//! `/render`: lines as JSON, CSV or Graphite's raw text.

use actix_web::HttpResponse;
use jiff::tz::TimeZone;

use super::{Received, Text, forms, respond};
use crate::query::{QueryError, RenderRequest, time_zone};

pub(super) async fn render(received: Received) -> HttpResponse {
    respond("graphite_render", received, |call| {
        let format = call.params.get("format").unwrap_or("json");
        let form: forms::Form = match format {
            "json" => forms::json,
            "csv" => forms::csv,
            "raw" => forms::raw,
            other => {
                return Err(QueryError::Invalid(format!(
                    "format={other} is not supported: use json, csv or raw; images are not drawn \
                     here, but Granary's page and Grafana draw these lines"
                )));
            }
        };
        let text = |name: &str| call.params.get(name).map(str::to_owned);
        let zone = call.params.get("tz").map(time_zone).transpose();
        let zone = zone.map_err(QueryError::Invalid)?.unwrap_or(TimeZone::UTC);
        let number = |name: &str| {
            call.params.number(name).map_err(|fault| QueryError::Invalid(fault.to_string()))
        };
        let targets = call.params.all("target").chain(call.params.all("target[]"));
        let request = RenderRequest {
            targets: targets.filter(|target| !target.is_empty()).map(str::to_owned).collect(),
            from: text("from"),
            until: text("until"),
            points: number("maxDataPoints")?,
        };
        let now = call.parts.clock.moment();
        let mut lines = call.store().render(&request, &zone, &call.limits(), now.clock)?.lines;
        if call.params.get("noNullPoints") == Some("true") {
            lines.retain(|line| line.values.iter().any(|value| !value.is_nan()));
        }
        let mut out = Vec::new();
        let mut taken = 0;
        for (index, line) in lines.iter().enumerate() {
            call.budget.check()?;
            form(index, line, &zone, &mut out);
            call.budget.reserve(out.capacity() - taken)?;
            taken = out.capacity();
        }
        if format == "json" {
            out.extend_from_slice(if lines.is_empty() { b"[]" } else { b"]" });
        }
        let media_type = if format == "json" { "application/json" } else { "text/csv" };
        let media_type = if format == "raw" { "text/plain" } else { media_type };
        Ok(Text { media_type, bytes: out })
    })
    .await
}
