//! InfluxDB line protocol with the daemon's rules: each field is a sample of the metric
//! `measurement_field`, and times are in nanoseconds.

use granary_agent_kit::Readings;
use granary_exposition::kind_of_name;
use influxdb_line_protocol::{FieldValue, ParsedLine, parse_lines};

use super::ParsedSample;

/// The maximum size of a line: the parser needs tens of times its length.
const LINE_BYTES_MAX: usize = 64 << 10;

/// Parses the output.
///
/// # Errors
/// The first error, with its line.
pub(crate) fn parse_output(
    output: &[u8],
    now_ms: i64,
    readings: &mut Readings,
) -> Result<(), String> {
    let text = std::str::from_utf8(output).map_err(|fault| fault.to_string())?;
    if let Some(index) = text.split('\n').position(|line| line.len() > LINE_BYTES_MAX) {
        return Err(format!("line {}: more than {LINE_BYTES_MAX} bytes", index + 1));
    }
    for (index, line) in parse_lines(text).enumerate() {
        let line = line.map_err(|fault| format!("line {}: {fault}", index + 1))?;
        let time_ms = line.timestamp.map(|nanos| nanos.div_euclid(1_000_000));
        push_fields(&line, time_ms.filter(|time| *time != now_ms), readings);
    }
    Ok(())
}

fn push_fields(line: &ParsedLine<'_>, time_ms: Option<i64>, readings: &mut Readings) {
    let tags = line.series.tag_set.iter().flatten();
    let tags: Vec<_> = tags.map(|(name, value)| (name.to_string(), value.to_string())).collect();
    for (field, value) in &line.field_set {
        let value = match value {
            FieldValue::F64(value) => *value,
            FieldValue::I64(value) => *value as f64,
            FieldValue::U64(value) => *value as f64,
            FieldValue::Boolean(value) => f64::from(u8::from(*value)),
            // Text fields are not samples.
            FieldValue::String(_) => continue,
        };
        let metric = format!("{}_{field}", line.series.measurement);
        let kind = kind_of_name(&metric);
        let (tags, unit) = (tags.clone(), String::new());
        ParsedSample { metric, tags, kind, unit, value, start_ms: None }.push(time_ms, readings);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_or_boolean_field_is_a_sample() {
        let mut readings = Readings::default();
        let text = b"raid,array=md0 disks=4i,ok=true,state=\"clean\"\njobs total=5 3000000000\n";
        parse_output(text, 7000, &mut readings).unwrap();
        let values: Vec<_> = readings
            .as_slice()
            .iter()
            .map(|reading| (reading.metric.to_string(), reading.value))
            .collect();
        assert_eq!(values, [("raid_disks".to_owned(), 4.0), ("raid_ok".to_owned(), 1.0)]);
        assert_eq!(readings.as_slice()[0].tags[0].1, "md0");
        assert_eq!((readings.known()[0].time_ms, readings.known()[0].value), (3000, 5.0));
        let fault = super::parse_output(b"a b=1\nc\n", 0, &mut readings).unwrap_err();
        assert!(fault.starts_with("line 2: "), "{fault}");
        let long = format!("a b=1\n{}", "x".repeat(LINE_BYTES_MAX + 1));
        assert!(
            super::parse_output(long.as_bytes(), 0, &mut readings).unwrap_err().contains("line 2")
        );
    }
}
