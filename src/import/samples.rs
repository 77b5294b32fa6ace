//! Samples in JSON, one per line, as `POST /api/v1/ingest` accepts them and `granary export
//! --format samples` writes them.

use std::io::BufRead;

use granary_protocol::{JsonSample, SampleContent, decode_json_sample};

use super::{Location, NO_TIME, Source, SourceFault, lines::Lines};
use crate::{
    ingest::{
        rows::{DescribedSeries, Rows},
        series_cache::Fingerprint,
    },
    model::{SeriesKey, UnixMillis},
    policy::RefusalReason,
};

const PROTOCOL: u8 = 67;

/// A file of samples.
#[derive(Debug)]
pub struct Samples<R>(Lines<R>);

impl<R: BufRead> Samples<R> {
    /// Creates a source from a reader.
    pub fn new(input: R) -> Self {
        Self(Lines::new(input))
    }
}

impl<R: BufRead> Source for Samples<R> {
    fn read(&mut self, rows: &mut Rows<'_>) -> Result<Option<Location>, SourceFault> {
        let Some(location) = self.0.next_or_refuse(|_| false, rows)? else { return Ok(None) };
        let line = self.0.text.trim_ascii();
        if !line.is_empty() {
            match decode_json_sample(line) {
                Ok(sample) => push(sample, rows),
                Err(problem) => rows.refuse(RefusalReason::BadSample, 1, || problem),
            }
        }
        Ok(Some(location))
    }
}

fn push(sample: JsonSample, rows: &mut Rows<'_>) {
    let JsonSample { metric, tags, kind, unit, time, start, content } = sample;
    let mut text = format!("{kind}\0{unit}\0{metric}");
    for (name, value) in &tags {
        for part in ["\0", name, "\0", value] {
            text.push_str(part);
        }
    }
    let target = rows.series(Fingerprint::new(PROTOCOL, text.as_bytes()), |limits| {
        let pairs = tags.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let key = SeriesKey::new(&metric, pairs, limits).map_err(|cause| cause.to_string())?;
        Ok(DescribedSeries { key, kind, is_declared: true, unit: unit.as_str().into() })
    });
    let at = time.map_or(NO_TIME, UnixMillis);
    match content {
        SampleContent::Number(value) => rows.push(target, at, value, start),
        SampleContent::Histogram(histogram) => {
            rows.push_histogram(target, at, Ok(histogram), start);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::import::intake::testing;

    #[test]
    fn lines_are_numbers_and_histograms_with_their_kinds_and_units() {
        let text = r#"{"metric": "m", "tags": {"b": "2", "a": 1}, "unit": "bytes", "time": 7, "value": 1.5}

{"metric": "m", "tags": {"a": "1", "b": "2"}, "unit": "bytes", "time": 8, "value": "+Inf"}
{"metric": "d", "kind": "delta", "time": "1970-01-01T00:00:09Z", "value": 3}
{"metric": "h", "time": 9, "start": 5, "histogram": {"schema": 0, "sum": 3, "positive": [[1, 2]]}}
{"metric": "h", "time": 10, "histogram": {"schema": 0, "sum": 5, "positive": [[1, 2], [2, 1]]}}
"#;
        let (kept, tally) = testing::read(&mut Samples::new(text.as_bytes()));
        assert_eq!(kept.refused, Vec::<String>::new());
        assert_eq!(
            kept.samples,
            [
                r#"m{a="1",b="2"} gauge bytes 7 1.5"#,
                r#"m{a="1",b="2"} gauge bytes 8 inf"#,
                "d delta  9000 3",
                "h histogram  9 2 {1:2}",
                "h histogram  10 3 {1:2,2:1}",
            ]
        );
        assert_eq!(tally.samples, 5);
    }

    #[test]
    fn a_bad_line_is_refused_with_its_number_and_affects_no_other() {
        let good = r#"{"metric": "m", "time": 7, "value": 1}"#;
        let bad = [
            ("{", "EOF"),
            (r#"{"metric": "m", "value": 1}"#, "no timestamp"),
            (r#"{"time": 7, "value": 1}"#, "give metric"),
            (r#"{"metric": "m", "time": 7}"#, "give metric"),
            (r#"{"metric": "m", "time": 7, "kind": "histogram", "value": 1}"#, "histogram instead"),
            (r#"{"metric": "m", "time": 7, "kind": "gauge", "histogram": {}}"#, "gaugehistogram"),
            (r#"{"metric": "m", "time": 7, "histogram": {"schema": 0}}"#, "missing field `sum`"),
            (r#"{"metric": "", "time": 7, "value": 1}"#, "metric"),
            (r#"{"timestamp_hour": {}, "values": {}}"#, "unknown field"),
        ];
        for (line, problem) in bad {
            let (kept, tally) =
                testing::read(&mut Samples::new(format!("{good}\n{line}\n{good}\n").as_bytes()));
            assert_eq!((kept.samples.len(), tally.samples), (2, 3), "{line}");
            let refused = &kept.refused[0];
            assert!(refused.starts_with("2 ") && refused.contains(problem), "{refused}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            text in r#"([{]("metric":"m",|"time":7,|"value":[0-9"]{1,3}|"histogram":[{]"sum":1[}]){0,4}[}]\n){0,5}"#,
        ) {
            for input in [&bytes[..], text.as_bytes()] {
                testing::read(&mut Samples::new(input));
            }
        }
    }
}
