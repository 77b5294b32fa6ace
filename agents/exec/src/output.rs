//! The output of scripts as readings, with one function per format.
//!
//! Must never know: the script.

mod influx;
mod nagios;

use std::borrow::Cow;

use granary_agent_kit::{KnownReading, Reading, Readings, Series};
use granary_exposition::{Families, Format, Names, Sample, parts};

pub(crate) use self::nagios::parse_output as nagios;
use crate::settings::OutputFormat;

/// Parses the output of one run. After an error, `readings` contains a part of the output, which
/// the caller must discard.
///
/// # Errors
/// The first error, with its location.
pub(crate) fn parse_output(
    output: &[u8],
    format: OutputFormat,
    now_ms: i64,
    readings: &mut Readings,
) -> Result<(), String> {
    match format {
        OutputFormat::Prometheus => parse_exposition(output, Format::Prometheus, readings),
        OutputFormat::OpenMetrics => parse_exposition(output, Format::OpenMetrics, readings),
        OutputFormat::Influx => influx::parse_output(output, now_ms, readings),
        OutputFormat::Nagios => nagios::parse_output(output, 0, readings),
    }
}

fn parse_exposition(output: &[u8], format: Format, readings: &mut Readings) -> Result<(), String> {
    let add = |sample: Sample<'_>, families: &Families| {
        let parts = parts(sample.series, Names::Valid)?;
        let family = families.find(&parts.metric);
        let family = family.cloned().unwrap_or_default();
        let unit = family.unit_of(&parts.metric).to_owned();
        let labels = parts.labels.iter();
        let tags = labels.map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let reading = ParsedSample {
            kind: family.kind_of(&parts.metric),
            metric: parts.metric.into_owned(),
            tags,
            unit,
            value: sample.value,
            start_ms: sample.start_ms,
        };
        reading.push(sample.time_ms, readings);
        Ok(())
    };
    granary_exposition::read(output, format, add).map_err(|fault| fault.to_string())
}

/// A sample from the output of a script.
struct ParsedSample {
    metric: String,
    tags: Vec<(String, String)>,
    kind: granary_protocol::Kind,
    unit: String,
    value: f64,
    start_ms: Option<i64>,
}

impl ParsedSample {
    /// Adds the sample. `time_ms` is the time that the script printed, if any.
    fn push(self, time_ms: Option<i64>, readings: &mut Readings) {
        let Self { metric, tags, kind, unit, value, start_ms } = self;
        if let Some(time_ms) = time_ms {
            let series = Series::new(metric, tags, kind, unit).into();
            let histogram = None;
            readings.push_known(KnownReading { series, value, time_ms, start_ms, histogram });
            return;
        }
        let tags = tags.into_iter().map(|(name, value)| (Cow::Owned(name), value)).collect();
        let (metric, unit) = (Cow::Owned(metric), Cow::Owned(unit));
        readings.push(Reading { metric, tags, kind, unit, value, start_ms });
    }
}

/// Parses bytes in every format, for fuzz tests.
pub fn fuzz(bytes: &[u8]) {
    for format in [
        OutputFormat::Prometheus,
        OutputFormat::OpenMetrics,
        OutputFormat::Influx,
        OutputFormat::Nagios,
    ] {
        drop(parse_output(bytes, format, 0, &mut Readings::default()));
    }
}

#[cfg(test)]
mod tests {
    use granary_protocol::Kind;

    use super::*;

    fn parse(format: OutputFormat, text: &str) -> Readings {
        let mut readings = Readings::default();
        parse_output(text.as_bytes(), format, 7000, &mut readings).unwrap();
        readings
    }

    #[test]
    fn prometheus_text_has_kinds_units_and_times() {
        let text = "# TYPE jobs counter\njobs{q=\"a\"} 4\nqueue 2 5000\n";
        let readings = parse(OutputFormat::Prometheus, text);
        let jobs = &readings.as_slice()[0];
        assert_eq!((&*jobs.metric, jobs.kind, jobs.value), ("jobs", Kind::Counter, 4.0));
        assert_eq!(jobs.tags, [(Cow::Borrowed("q"), "a".to_owned())]);
        let queue = &readings.known()[0];
        assert_eq!((queue.series.metric(), queue.time_ms, queue.value), ("queue", 5000, 2.0));
    }

    proptest::proptest! {
        #[test]
        fn any_output_is_parsed_or_refused(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300)) {
            fuzz(&bytes);
        }
    }
}
