//! `/render`: lines as JSON, CSV, Graphite's raw text, or an image.

use actix_web::HttpResponse;
use jiff::tz::TimeZone;

use super::{
    AnswerBody, Call, Received,
    forms::{self, LineFormat},
    image::{self, ImageRequest},
    respond,
};
use crate::query::{Line, QueryError, RenderRequest, time_zone};

/// The form of an answer.
enum Form {
    Text(LineFormat, &'static str),
    Image(ImageRequest),
}

pub(super) async fn render(received: Received) -> HttpResponse {
    respond("graphite_render", received, |call| {
        let form = match call.params.get("format").unwrap_or("json") {
            "json" => Form::Text(forms::json, "application/json"),
            "csv" => Form::Text(forms::csv, "text/csv; charset=utf-8"),
            "raw" => Form::Text(forms::raw, "text/plain; charset=utf-8"),
            "png" => Form::Image(image_request(call)?),
            other => {
                return Err(QueryError::Invalid(format!(
                    "format={other} is not supported: use json, csv, raw or png"
                )));
            }
        };
        let text = |name: &str| call.params.get(name).map(str::to_owned);
        let zone = call.params.get("tz").map(time_zone).transpose();
        let zone = zone.map_err(QueryError::Invalid)?.unwrap_or(TimeZone::UTC);
        let pixels = match &form {
            Form::Image(image) => Some(image.width as usize),
            Form::Text(..) => None,
        };
        let targets = call.params.all("target").chain(call.params.all("target[]"));
        let request = RenderRequest {
            targets: targets.filter(|target| !target.is_empty()).map(str::to_owned).collect(),
            from: text("from"),
            until: text("until"),
            points: number(call, "maxDataPoints")?.or(pixels),
        };
        let now = call.parts.clock.moment();
        let mut lines = call.store().render(&request, &zone, &call.limits(), now.clock)?.lines;
        if call.params.get("noNullPoints") == Some("true") {
            lines.retain(|line| line.values.iter().any(|value| !value.is_nan()));
        }
        match form {
            Form::Text(line_format, media_type) => {
                let bytes = lines_text(call, (line_format, media_type), &lines, &zone)?;
                Ok(AnswerBody { media_type, bytes })
            }
            Form::Image(image) => {
                // The pixels, and the bytes of the answer.
                call.budget.reserve(2 * image.memory())?;
                let drawn = image::png(&image, &lines, &zone);
                let fault = |cause| QueryError::Invalid(format!("format=png: {cause}"));
                Ok(AnswerBody { media_type: "image/png", bytes: drawn.map_err(fault)? })
            }
        }
    })
    .await
}

fn lines_text(
    call: &Call<'_>,
    (line_format, media_type): (LineFormat, &str),
    lines: &[Line],
    zone: &TimeZone,
) -> Result<Vec<u8>, QueryError> {
    let mut out = Vec::new();
    let mut reserved = 0;
    for (index, line) in lines.iter().enumerate() {
        call.budget.check()?;
        line_format(index, line, zone, &mut out);
        call.budget.reserve(out.capacity() - reserved)?;
        reserved = out.capacity();
    }
    if media_type == "application/json" {
        out.extend_from_slice(if lines.is_empty() { b"[]" } else { b"]" });
    }
    Ok(out)
}

/// Reads the parameters of an image.
fn image_request(call: &Call<'_>) -> Result<ImageRequest, QueryError> {
    let size = [number(call, "width")?, number(call, "height")?];
    let hides_legend = call.params.get("hideLegend").map(|text| text.eq_ignore_ascii_case("true"));
    let title = call.params.get("title").map(str::to_owned);
    let request = ImageRequest::new(size).map_err(QueryError::Invalid)?;
    Ok(ImageRequest { title, hides_legend, ..request })
}

fn number(call: &Call<'_>, name: &str) -> Result<Option<usize>, QueryError> {
    call.params.number(name).map_err(|fault| QueryError::Invalid(fault.to_string()))
}
