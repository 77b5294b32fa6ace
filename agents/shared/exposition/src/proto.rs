//! Prometheus' messages in Protocol Buffers (`client_model`, `io/prometheus/client/metrics.proto`),
//! one metric at a time. Each series is converted to its text form, so that all formats share the
//! parser of series.
//!
//! Native histograms have no text form: they are values of the series with the family's name.

use std::{fmt::Write, str};

use granary_histogram::Histogram;

use crate::{
    Families, NativeHistograms, Type,
    native::native_histogram,
    pieces::Pieces,
    sample::{Fault, LINE_BYTES_MAX, Sample, SampleSink},
    wire::{Fields, Value, WireFault},
};

/// The length-prefixed families of a response.
pub(crate) struct Messages<'a> {
    pieces: Pieces<'a>,
    state: FamilyState,
}

/// State that is reused for all families.
#[derive(Default)]
struct FamilyState {
    families: Families,
    series: String,
    native: NativeHistograms,
}

/// The shared fields of a family.
#[derive(Default)]
struct FamilyMessage<'a> {
    name: &'a str,
    kind: i64,
}

/// The codes of `MetricType`.
const COUNTER: i64 = 0;
const SUMMARY: i64 = 2;
const UNTYPED: i64 = 3;
const HISTOGRAM: i64 = 4;
const GAUGE_HISTOGRAM: i64 = 5;

/// A metric's labels and time, and the message with its values.
#[derive(Default)]
struct Metric<'a> {
    labels: Vec<(&'a str, &'a str)>,
    time_ms: Option<i64>,
    values: &'a [u8],
}

/// The reason why parsing ends: invalid bytes, or a rejected sample.
enum StopReason {
    Wire(WireFault),
    Rejected(String),
}

impl From<WireFault> for StopReason {
    fn from(fault: WireFault) -> Self {
        Self::Wire(fault)
    }
}

impl<'a> Messages<'a> {
    pub(crate) fn of(pieces: Pieces<'a>, native: NativeHistograms) -> Self {
        Self { pieces, state: FamilyState { native, ..FamilyState::default() } }
    }

    /// Passes each sample to `take`.
    pub(crate) fn pass_all(mut self, take: &mut SampleSink<'_>) -> Result<(), Fault> {
        for index in 0_u64.. {
            let position = self.pieces.position();
            let fault = |problem| Fault::new(format!("family {index} at byte {position}"), problem);
            let Some(message) = self.pieces.message().map_err(fault)? else { break };
            let before = self.state.families.bytes();
            match self.state.pass_family(message, take) {
                Ok(()) => {}
                Err(StopReason::Wire(cause)) => return Err(fault(cause.to_string())),
                Err(StopReason::Rejected(problem)) => return Err(fault(problem)),
            }
            let family_bytes = self.state.families.bytes() - before;
            self.pieces.reserve(family_bytes).map_err(fault)?;
        }
        Ok(())
    }
}

impl FamilyState {
    /// Parses `MetricFamily`, with the fields name 1, type 3, metric 4, unit 5.
    fn pass_family(&mut self, message: &[u8], take: &mut SampleSink<'_>) -> Result<(), StopReason> {
        let mut family = FamilyMessage::default();
        let mut unit = "";
        let mut fields = Fields::of(message);
        while let Some((field, value)) = fields.next_field()? {
            match field {
                1 => family.name = parse_text(value)?,
                3 => family.kind = value.int(),
                5 => unit = parse_text(value)?,
                _ => {}
            }
        }
        self.families.set_type(
            family.name,
            match family.kind {
                COUNTER => Type::Counter,
                SUMMARY | HISTOGRAM | UNTYPED => Type::ByName,
                _ => Type::Gauge,
            },
        );
        if !unit.is_empty() {
            self.families.set_unit(family.name, unit);
        }
        let mut fields = Fields::of(message);
        while let Some((field, value)) = fields.next_field()? {
            if field == 4 {
                self.pass_metric(&family, value.bytes(), take)?;
            }
        }
        Ok(())
    }

    /// Parses `Metric`, with the fields label 1, time 6; gauge 2, counter 3, summary 4, untyped 5,
    /// histogram 7.
    fn pass_metric(
        &mut self,
        family: &FamilyMessage<'_>,
        message: &[u8],
        take: &mut SampleSink<'_>,
    ) -> Result<(), StopReason> {
        let mut metric = Metric::default();
        let mut values_field = 0;
        let mut fields = Fields::of(message);
        while let Some((field, value)) = fields.next_field()? {
            match field {
                1 => metric.labels.push(parse_label(value.bytes())?),
                6 => metric.time_ms = Some(value.int()),
                2..=5 | 7 => (values_field, metric.values) = (field, value.bytes()),
                _ => {}
            }
        }
        match values_field {
            4 => self.pass_distribution(family.name, &metric, &SUMMARY_FIELDS, take),
            7 => self.pass_histogram(family, &metric, take),
            2 | 3 | 5 => {
                let (mut number, mut start_ms) = (0.0, None);
                let mut fields = Fields::of(metric.values);
                while let Some((field, value)) = fields.next_field()? {
                    match field {
                        1 => number = value.double(),
                        3 if values_field == 3 => start_ms = Some(timestamp_ms(value.bytes())?),
                        _ => {}
                    }
                }
                self.pass_sample(family.name, &metric, None, (number, start_ms, None), take)
            }
            _ => Ok(()),
        }
    }

    /// Passes the native histogram, the classic series, or both.
    fn pass_histogram(
        &mut self,
        family: &FamilyMessage<'_>,
        metric: &Metric<'_>,
        take: &mut SampleSink<'_>,
    ) -> Result<(), StopReason> {
        if self.native != NativeHistograms::Ignored
            && let Some(found) = native_histogram(metric.values, family.kind == GAUGE_HISTOGRAM)?
        {
            let fault = |fault| StopReason::Rejected(format!("{:?}: {fault}", family.name));
            let histogram = found.map_err(fault)?;
            let (mut start_ms, mut has_buckets) = (None, false);
            let mut fields = Fields::of(metric.values);
            while let Some((field, value)) = fields.next_field()? {
                has_buckets |= field == 3;
                if field == HISTOGRAM_FIELDS.created {
                    start_ms = Some(timestamp_ms(value.bytes())?);
                }
            }
            let value = (histogram.count, start_ms, Some(&histogram));
            self.pass_sample(family.name, metric, None, value, take)?;
            if self.native == NativeHistograms::Preferred || !has_buckets {
                return Ok(());
            }
        }
        self.pass_distribution(family.name, metric, &HISTOGRAM_FIELDS, take)
    }

    fn pass_distribution(
        &mut self,
        name: &str,
        metric: &Metric<'_>,
        distribution: &Distribution,
        take: &mut SampleSink<'_>,
    ) -> Result<(), StopReason> {
        let (mut count, mut sum, mut start_ms) = (0.0, 0.0, None);
        let mut buckets = Vec::new();
        let mut fields = Fields::of(metric.values);
        while let Some((field, value)) = fields.next_field()? {
            match field {
                1 => count = value.int() as f64,
                2 => sum = value.double(),
                3 => buckets.push(parse_bucket(value.bytes(), distribution)?),
                4 if distribution.is_histogram() => count = value.double(),
                field if field == distribution.created => {
                    start_ms = Some(timestamp_ms(value.bytes())?);
                }
                _ => {}
            }
        }
        let is_histogram = distribution.is_histogram();
        if is_histogram
            && !buckets.is_empty()
            && !buckets.iter().any(|(bound, _)| *bound == f64::INFINITY)
        {
            buckets.push((f64::INFINITY, count));
        }
        let bucket_name = format!("{name}{}", distribution.suffix);
        for (bound, value) in buckets {
            let bound = format_number(bound);
            let label = Some((distribution.label, bound.as_str()));
            let start_ms = start_ms.filter(|_| is_histogram);
            self.pass_sample(&bucket_name, metric, label, (value, start_ms, None), take)?;
        }
        self.pass_sample(&format!("{name}_sum"), metric, None, (sum, start_ms, None), take)?;
        self.pass_sample(&format!("{name}_count"), metric, None, (count, start_ms, None), take)
    }

    /// Writes the series as text and passes the sample to `take`.
    fn pass_sample(
        &mut self,
        name: &str,
        metric: &Metric<'_>,
        additional_label: Option<(&str, &str)>,
        (value, start_ms, histogram): (f64, Option<i64>, Option<&Histogram>),
        take: &mut SampleSink<'_>,
    ) -> Result<(), StopReason> {
        self.series.clear();
        self.series.push('{');
        push_quoted(&mut self.series, name);
        for (name, value) in metric.labels.iter().copied().chain(additional_label) {
            self.series.push(',');
            push_quoted(&mut self.series, name);
            self.series.push('=');
            push_quoted(&mut self.series, value);
        }
        self.series.push('}');
        if self.series.len() > LINE_BYTES_MAX {
            let problem = format!("a series of more than {LINE_BYTES_MAX} bytes");
            return Err(StopReason::Rejected(problem));
        }
        let series = self.series.as_bytes();
        let sample = Sample { series, value, time_ms: metric.time_ms, start_ms, histogram };
        take(sample, &self.families).map_err(StopReason::Rejected)
    }
}

/// The field numbers and names of a summary or histogram.
struct Distribution {
    suffix: &'static str,
    label: &'static str,
    created: u32,
}

impl Distribution {
    fn is_histogram(&self) -> bool {
        self.label == HISTOGRAM_FIELDS.label
    }
}

const SUMMARY_FIELDS: Distribution = Distribution { suffix: "", label: "quantile", created: 4 };
const HISTOGRAM_FIELDS: Distribution = Distribution { suffix: "_bucket", label: "le", created: 15 };

/// Parses `Quantile`, with the fields quantile 1, value 2; or `Bucket`, with the fields count 1,
/// bound 2, count as a float 4.
fn parse_bucket(message: &[u8], distribution: &Distribution) -> Result<(f64, f64), WireFault> {
    let (mut first, mut second, mut integer_count, mut float_count) = (0.0, 0.0, 0.0, None);
    let mut fields = Fields::of(message);
    while let Some((field, value)) = fields.next_field()? {
        match (field, value) {
            (1, Value::Varint(count)) => integer_count = count as f64,
            (1, _) => first = value.double(),
            (2, _) => second = value.double(),
            (4, _) => float_count = Some(value.double()),
            _ => {}
        }
    }
    Ok(if distribution.is_histogram() {
        (second, float_count.unwrap_or(integer_count))
    } else {
        (first, second)
    })
}

/// Parses `LabelPair`, with the fields name 1, value 2.
fn parse_label(message: &[u8]) -> Result<(&str, &str), StopReason> {
    let mut label = ("", "");
    let mut fields = Fields::of(message);
    while let Some((field, value)) = fields.next_field()? {
        match field {
            1 => label.0 = parse_text(value)?,
            2 => label.1 = parse_text(value)?,
            _ => {}
        }
    }
    Ok(label)
}

/// Parses `google.protobuf.Timestamp`, with the fields seconds 1, nanoseconds 2.
fn timestamp_ms(message: &[u8]) -> Result<i64, WireFault> {
    let (mut seconds, mut nanos) = (0_i64, 0);
    let mut fields = Fields::of(message);
    while let Some((field, value)) = fields.next_field()? {
        match field {
            1 => seconds = value.int(),
            2 => nanos = value.int(),
            _ => {}
        }
    }
    Ok(seconds.saturating_mul(1000).saturating_add(nanos / 1_000_000))
}

fn parse_text(value: Value<'_>) -> Result<&str, StopReason> {
    str::from_utf8(value.bytes())
        .map_err(|_| StopReason::Rejected("a name or value is not UTF-8".to_owned()))
}

fn push_quoted(out: &mut String, text: &str) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            letter => out.push(letter),
        }
    }
    out.push('"');
}

/// Formats a number for labels as OpenMetrics requires: as Go does, and integers with `.0`.
pub(crate) fn format_number(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let mut out = String::new();
    // strconv.FormatFloat with 'g' and the shortest digits uses exponents outside of this range.
    // Writing to a String cannot fail.
    let _ok = if (-4..6).contains(&exponent) {
        write!(out, "{number}")
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        write!(out, "{digits}e{sign}{:02}", exponent.abs())
    };
    if !out.contains(['.', 'e']) {
        out.push_str(".0");
    }
    out
}
