//! CSV with a header (RFC 4180, with any separator): columns of times, values, tags, and optionally
//! the metric.

mod columns;
mod record;

use std::io::BufRead;

pub use columns::Columns;

use granary_exposition::kind_of_name;

use super::{Location, Source, SourceFault, lines::Lines, time};
use crate::{
    ingest::{
        rows::{DescribedSeries, Rows},
        series_cache::Fingerprint,
    },
    model::SeriesKey,
    policy::RefusalReason,
};
use columns::Layout;
use record::Record;

const PROTOCOL: u8 = 66;

/// A CSV file with the meaning of its columns.
#[derive(Debug)]
pub struct Csv<R> {
    lines: Lines<R>,
    columns: Columns,
    layout: Option<Layout>,
    record: Record,
    /// The bytes that identify the series of a record.
    written: Vec<u8>,
}

impl<R: BufRead> Csv<R> {
    /// Creates a source from a reader.
    pub fn new(input: R, columns: Columns) -> Self {
        let record = Record::new(columns.separator);
        Self { lines: Lines::new(input), columns, layout: None, record, written: Vec::new() }
    }
}

impl<R: BufRead> Source for Csv<R> {
    fn read(&mut self, rows: &mut Rows<'_>) -> Result<Option<Location>, SourceFault> {
        let Some(location) = self.lines.next_or_refuse(is_open, rows)? else { return Ok(None) };
        if self.lines.text.is_empty() {
            return Ok(Some(location));
        }
        if let Err(problem) = self.record.read(&self.lines.text) {
            rows.refuse(RefusalReason::BadSample, 1, || problem);
            return Ok(Some(location));
        }
        let Some(layout) = &self.layout else {
            let layout = Layout::new(&self.record, &self.columns);
            self.layout = Some(layout.map_err(SourceFault::Damaged)?);
            return Ok(Some(location));
        };
        if let Err(problem) = read_record(&self.record, layout, &mut self.written, rows) {
            rows.refuse(RefusalReason::BadSample, 1, || problem);
        }
        Ok(Some(location))
    }
}

fn is_open(line: &[u8]) -> bool {
    line.iter().fold(false, |open, byte| open ^ (*byte == b'"'))
}

fn read_record(
    record: &Record,
    layout: &Layout,
    written: &mut Vec<u8>,
    rows: &mut Rows<'_>,
) -> Result<(), String> {
    if record.len() != layout.width {
        return Err(format!("{} columns, but the header has {}", record.len(), layout.width));
    }
    let at = record.get(layout.time);
    let at = time::any(at).ok_or_else(|| {
        format!("{at:?} is not a time; use RFC 3339 or Unix seconds or milliseconds")
    })?;
    for (column, name) in &layout.values {
        let text = record.get(*column).trim();
        // An empty cell is a missing sample.
        if text.is_empty() {
            continue;
        }
        let Ok(value) = text.parse::<f64>() else {
            rows.refuse(RefusalReason::BadSample, 1, || format!("{text:?} is not a number"));
            continue;
        };
        written.clear();
        written.extend_from_slice(&(*column as u32).to_le_bytes());
        for column in layout.metric.iter().chain(layout.tags.iter().map(|(column, _)| column)) {
            written.extend_from_slice(record.get(*column).as_bytes());
            written.push(0);
        }
        let target = rows.series(Fingerprint::new(PROTOCOL, written), |limits| {
            let metric = layout.metric.map_or("", |column| record.get(column));
            let metric = format!("{metric}{name}");
            let tags = layout.tags.iter().map(|(column, name)| (&**name, record.get(*column)));
            let key = SeriesKey::new(&metric, tags, limits).map_err(|cause| cause.to_string())?;
            Ok(DescribedSeries {
                key,
                kind: kind_of_name(&metric),
                unit: "".into(),
                is_declared: false,
            })
        });
        rows.push_finite(target, at, value);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::import::{
        intake::{read_all, testing},
        selection::Selection,
    };

    fn check(text: &str, columns: Columns, expected: &[&str]) {
        let (kept, tally) = testing::read(&mut Csv::new(text.as_bytes(), columns));
        assert_eq!(kept.samples, expected);
        assert_eq!(kept.refused, Vec::<String>::new());
        assert_eq!(tally.samples, expected.len() as u64);
    }

    fn texts(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn common_columns_are_found() {
        let text = "Time,metric,value,host,\"data center\"\n\
                    2026-11-21T12:34:56Z,cpu,1.5,a,\"x, \"\"y\"\"\"\r\n\
                    1795264497,jobs_total,2,b,\n1795264497500,cpu,,a,z";
        let expected = [
            r#"cpu{data center="x, \"y\"",host="a"} gauge  1795264496000 1.5"#,
            r#"jobs_total{host="b"} counter  1795264497000 2"#,
        ];
        check(text, Columns::default(), &expected);
    }

    #[test]
    fn columns_are_chosen() {
        let text = "when;in;out;room;note\n5;1;2;lab;\"two\nlines\"\n";
        let columns = |metric: Option<&str>, values: &[&str]| Columns {
            time: Some("when".to_owned()),
            metric: metric.map(str::to_owned),
            values: texts(values),
            tags: Some(texts(&["room"])),
            separator: b';',
        };
        let room = r#"{room="lab"} gauge  5000"#;
        let both =
            |first: &str, second: &str| [format!("{first}{room} 1"), format!("{second}{room} 2")];
        let check = |columns, expected: [String; 2]| {
            check(text, columns, &[&expected[0], &expected[1]]);
        };
        check(columns(None, &["in", "out"]), both("in", "out"));
        check(columns(Some("net"), &["in", "out"]), both("net_in", "net_out"));
        check(columns(Some("room"), &["in", "out"]), both("lab_in", "lab_out"));
        let expected = [&*format!("net{room} 2")];
        super::tests::check(text, columns(Some("net"), &["out"]), &expected);
    }

    #[test]
    fn a_bad_line_is_refused_with_its_number_and_affects_no_other() {
        let text = "time,metric,value\n1,a,1\n2,a\n3,a,x\nnow,a,1\n\n5,\"a,1\n6,a,6\n";
        let (kept, _) = testing::read(&mut Csv::new(text.as_bytes(), Columns::default()));
        assert_eq!(kept.samples, ["a gauge  1000 1", "a gauge  6000 6"]);
        let locations: Vec<_> =
            kept.refused.iter().map(|refusal| refusal.split(' ').next()).collect();
        assert_eq!(locations, [Some("3"), Some("4"), Some("5"), Some("7")]);
    }

    #[test]
    fn an_unsuitable_header_is_an_error_that_names_the_option() {
        let fault = |text: &str, columns: Columns| {
            let mut source = Csv::new(text.as_bytes(), columns);
            let mut kept = testing::RecordedOutput::default();
            read_all(&mut source, "a".into(), &Selection::default(), &mut kept)
                .1
                .unwrap_err()
                .to_string()
        };
        assert!(
            fault("a,b\n", Columns::default())
                .contains("set it with --csv-time; the header has a, b")
        );
        assert!(fault("time,b\n", Columns::default()).contains("--csv-value"));
        let columns = Columns { tags: Some(texts(&["c"])), ..Columns::default() };
        assert!(fault("time,value\n", columns).contains("\"c\" for --csv-tags"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            text in "([0-9a,\" ]{0,12}\n){0,9}",
        ) {
            let text = format!("time,metric,value\n{text}");
            for input in [&bytes[..], text.as_bytes()] {
                let mut source = Csv::new(input, Columns::default());
                let mut kept = testing::RecordedOutput::default();
                drop(read_all(&mut source, "a".into(), &Selection::default(), &mut kept));
            }
        }

        #[test]
        fn quoted_text_is_preserved(value in "[ -~é]{0,20}") {
            let text = format!("time,value,tag\n5,1,\"{}\"\n", value.replace('"', "\"\""));
            let (kept, _) = testing::read(&mut Csv::new(text.as_bytes(), Columns::default()));
            let tag = if value.is_empty() { String::new() } else { format!("{{tag={value:?}}}") };
            prop_assert_eq!(kept.samples, [format!("value{tag} gauge  5000 1")]);
        }
    }
}
