//! OTLP metrics in protobuf (opentelemetry-proto, `metrics/v1/metrics.proto`), one point at a time:
//! decoded as a whole, a request of small points would take a hundred times its bytes.

use granary_exposition::wire::{Fields, Value};
use opentelemetry_proto::tonic::{
    metrics::v1::{
        ExponentialHistogramDataPoint, HistogramDataPoint, NumberDataPoint, SummaryDataPoint,
    },
    resource::v1::Resource,
};
use prost::Message;

use super::{Metric, Points, ResourceContext, sum_kind, total_kind};
use crate::{ingest::rows::Rows, model::Kind, policy::RefusalReason};

/// The maximum size of a point or a resource, each of which is decoded as a whole.
const MESSAGE_BYTES_MAX: usize = 256 << 10;

/// Decodes an `ExportMetricsServiceRequest`.
pub(super) fn decode(body: &[u8], rows: &mut Rows<'_>) -> Result<(), String> {
    messages(body, 1, |resource| {
        let mut shared = ResourceContext::default();
        let mut fits = true;
        messages(resource, 1, |message| {
            fits = message.len() <= MESSAGE_BYTES_MAX;
            if fits {
                shared = ResourceContext::new(&read::<Resource>(message)?.attributes);
            }
            Ok(())
        })?;
        if !fits {
            rows.begin_point();
            refuse_long(rows, "a resource");
            return Ok(());
        }
        messages(resource, 2, |scope| messages(scope, 2, |message| metric(message, &shared, rows)))
    })
}

/// Decodes `Metric`: name 1, unit 3, and one of gauge 5, sum 7, histogram 9, exponential histogram
/// 10, summary 11, whose points are in field 1.
fn metric(message: &[u8], shared: &ResourceContext, rows: &mut Rows<'_>) -> Result<(), String> {
    let (mut name, mut unit, mut data) = (&[][..], &[][..], None);
    let mut fields = Fields::of(message);
    while let Some((field, value)) = fields.next_field().map_err(fault)? {
        match (field, value) {
            (1, Value::Bytes(bytes)) => name = bytes,
            (3, Value::Bytes(bytes)) => unit = bytes,
            (5 | 7 | 9..=11, Value::Bytes(bytes)) => data = Some((field, bytes)),
            _ => {}
        }
    }
    let Some((field, data)) = data else { return Ok(()) };
    let (temporality, is_monotonic) = totals(data)?;
    let metric = Metric { name: text(name)?, unit: text(unit)? };
    let mut points = Points::new(metric, shared, rows);
    let total = total_kind(temporality);
    messages(data, 1, |point| {
        if points.rows.is_full() {
            return Ok(());
        }
        if point.len() > MESSAGE_BYTES_MAX {
            points.rows.begin_point();
            refuse_long(points.rows, "a point");
            return Ok(());
        }
        match field {
            5 => points.number(&read::<NumberDataPoint>(point)?, Kind::Gauge),
            7 => points.number(&read(point)?, sum_kind(temporality, is_monotonic)),
            9 => points.histogram(&read::<HistogramDataPoint>(point)?, total),
            10 => points.exponential(&read::<ExponentialHistogramDataPoint>(point)?, total),
            _ => points.summary(&read::<SummaryDataPoint>(point)?),
        }
        Ok(())
    })
}

/// Returns the aggregation temporality (field 2) of sums and histograms, and whether sums only grow
/// (field 3).
fn totals(data: &[u8]) -> Result<(i32, bool), String> {
    let (mut temporality, mut is_monotonic) = (0, false);
    let mut fields = Fields::of(data);
    while let Some((field, value)) = fields.next_field().map_err(fault)? {
        match (field, value) {
            (2, Value::Varint(code)) => temporality = code as i32,
            (3, Value::Varint(flag)) => is_monotonic = flag != 0,
            _ => {}
        }
    }
    Ok((temporality, is_monotonic))
}

/// Calls `visit` with each message in a field.
fn messages(
    message: &[u8],
    wanted: u32,
    mut visit: impl FnMut(&[u8]) -> Result<(), String>,
) -> Result<(), String> {
    let mut fields = Fields::of(message);
    while let Some((field, value)) = fields.next_field().map_err(fault)? {
        if let Value::Bytes(bytes) = value
            && field == wanted
        {
            visit(bytes)?;
        }
    }
    Ok(())
}

fn read<T: Message + Default>(message: &[u8]) -> Result<T, String> {
    T::decode(message).map_err(fault)
}

fn text(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes).map_err(fault)
}

fn fault(cause: impl std::fmt::Display) -> String {
    format!("body: {cause}")
}

fn refuse_long(rows: &mut Rows<'_>, part: &str) {
    rows.refuse(RefusalReason::BadSample, 1, || {
        format!("{part} of more than {MESSAGE_BYTES_MAX} bytes is not read")
    });
}
