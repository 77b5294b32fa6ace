//! CSV with a header (RFC 4180, with a separator of choice): a column of times, one or more of
//! values, maybe one that names the metric, and tags.

use std::io::BufRead;

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};

use super::{
    Place, Source, SourceFault,
    lines::{LINE_BYTES_MAX, Line, Lines},
    time,
};
use crate::{
    ingest::{
        rows::{Described, Rows, kind_of_name},
        series_cache::Fingerprint,
    },
    model::SeriesKey,
    pipeline::RefusalReason,
};

const PROTOCOL: u8 = 66;
/// Columns of a file.
const COLUMNS_MAX: usize = 4096;

const TIME_NAMES: [&str; 6] = ["time", "timestamp", "ts", "datetime", "date", "_time"];
const METRIC_NAMES: [&str; 3] = ["metric", "name", "__name__"];
const VALUE_NAMES: [&str; 2] = ["value", "_value"];

/// Which column is what; what is empty is found by its usual names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns {
    /// The column of times.
    pub time: Option<String>,
    /// The column that names the metric, or else the name of all.
    pub metric: Option<String>,
    /// The columns of values.
    pub values: Vec<String>,
    /// The columns that are tags; all others when not given.
    pub tags: Option<Vec<String>>,
    /// What separates columns.
    pub separator: u8,
}

impl Default for Columns {
    fn default() -> Self {
        Self { time: None, metric: None, values: Vec::new(), tags: None, separator: b',' }
    }
}

/// The columns of one file by their index.
#[derive(Debug, Default)]
struct Layout {
    time: usize,
    metric: Option<usize>,
    /// Column and the metric, or with a column for the metric what is put behind it.
    values: Vec<(usize, String)>,
    tags: Vec<(usize, String)>,
    width: usize,
}

/// See the module.
#[derive(Debug)]
pub struct Csv<R> {
    lines: Lines<R>,
    columns: Columns,
    layout: Option<Layout>,
    record: Record,
    /// What tells a series.
    written: Vec<u8>,
}

impl<R: BufRead> Csv<R> {
    /// Reads from here.
    pub fn new(input: R, columns: Columns) -> Self {
        let record = Record::new(columns.separator);
        Self { lines: Lines::new(input), columns, layout: None, record, written: Vec::new() }
    }
}

impl<R: BufRead> Source for Csv<R> {
    fn read(&mut self, rows: &mut Rows<'_>) -> Result<Option<Place>, SourceFault> {
        let mut refuse = |place, problem: String| {
            rows.refuse(RefusalReason::BadSample, 1, || problem);
            Ok(Some(place))
        };
        let place = match self.lines.next(is_open)? {
            None => return Ok(None),
            Some(Line::TooLong(place)) => {
                return refuse(place, format!("the line is longer than {LINE_BYTES_MAX} bytes"));
            }
            Some(Line::Text(place)) => place,
        };
        if self.lines.text.is_empty() {
            return Ok(Some(place));
        }
        if let Err(problem) = self.record.read(&self.lines.text) {
            return refuse(place, problem);
        }
        let Some(layout) = &self.layout else {
            let layout = Layout::new(&self.record, &self.columns);
            self.layout = Some(layout.map_err(SourceFault::Damaged)?);
            return Ok(Some(place));
        };
        if let Err(problem) = read_record(&self.record, layout, &mut self.written, rows) {
            rows.refuse(RefusalReason::BadSample, 1, || problem);
        }
        Ok(Some(place))
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
        format!("{at:?} is no time; use RFC 3339 or Unix seconds or milliseconds")
    })?;
    for (column, name) in &layout.values {
        let text = record.get(*column).trim();
        // An empty cell is no sample.
        if text.is_empty() {
            continue;
        }
        let Ok(value) = text.parse::<f64>() else {
            rows.refuse(RefusalReason::BadSample, 1, || format!("{text:?} is no number"));
            continue;
        };
        written.clear();
        written.extend_from_slice(&(*column as u32).to_le_bytes());
        for column in layout.metric.iter().chain(layout.tags.iter().map(|(column, _)| column)) {
            written.extend_from_slice(record.get(*column).as_bytes());
            written.push(0);
        }
        let target = rows.series(Fingerprint::of(PROTOCOL, written), |limits| {
            let metric = layout.metric.map_or("", |column| record.get(column));
            let metric = format!("{metric}{name}");
            let tags = layout.tags.iter().map(|(column, name)| (&**name, record.get(*column)));
            let key = SeriesKey::new(&metric, tags, limits).map_err(|cause| cause.to_string())?;
            Ok(Described { key, kind: kind_of_name(&metric), unit: "".into() })
        });
        rows.push_finite(target, at, value);
    }
    Ok(())
}

impl Layout {
    fn new(header: &Record, columns: &Columns) -> Result<Self, String> {
        let names: Vec<_> = (0..header.len()).map(|index| header.get(index).trim()).collect();
        let names: Vec<_> = names.iter().map(|name| name.trim_start_matches('\u{feff}')).collect();
        let shown = names.join(", ");
        let named = |wanted: &str| names.iter().position(|name| *name == wanted);
        let usual = |usual: &[&str]| {
            let mut names = names.iter();
            names.position(|name| usual.iter().any(|own| name.eq_ignore_ascii_case(own)))
        };
        let column = |wanted: &String, option: &str| {
            named(wanted).ok_or_else(|| {
                format!("the header has no column {wanted:?} for {option}; it has {shown}")
            })
        };
        let time = match &columns.time {
            Some(name) => column(name, "--csv-time")?,
            None => usual(&TIME_NAMES).ok_or_else(|| {
                format!("which column is the time? say --csv-time; the header has {shown}")
            })?,
        };
        let (metric, name) = match &columns.metric {
            Some(name) => (named(name), named(name).is_none().then_some(name)),
            None => (usual(&METRIC_NAMES), None),
        };
        let values = if columns.values.is_empty() {
            vec![usual(&VALUE_NAMES).ok_or_else(|| {
                format!("which columns are values? say --csv-value; the header has {shown}")
            })?]
        } else {
            let found = columns.values.iter().map(|name| column(name, "--csv-value"));
            found.collect::<Result<Vec<_>, _>>()?
        };
        let single = values.len() == 1;
        let value_name = |index: usize| match (metric, name) {
            (Some(_), _) if single => String::new(),
            (Some(_), _) => format!("_{}", names[index]),
            (None, Some(name)) if single => name.clone(),
            (None, Some(name)) => format!("{name}_{}", names[index]),
            (None, None) => names[index].to_owned(),
        };
        let tags = match &columns.tags {
            Some(tags) => {
                tags.iter().map(|name| column(name, "--csv-tags")).collect::<Result<Vec<_>, _>>()?
            }
            None => (0..names.len())
                .filter(|own| *own != time && Some(*own) != metric && !values.contains(own))
                .collect(),
        };
        let tags = tags.into_iter().map(|own| (own, names[own].to_owned())).collect();
        let values = values.iter().map(|own| (*own, value_name(*own))).collect();
        Ok(Self { time, metric, values, tags, width: names.len() })
    }
}

/// One record, taken apart.
#[derive(Debug)]
struct Record {
    reader: Reader,
    text: Vec<u8>,
    ends: Vec<usize>,
    columns: usize,
}

impl Record {
    fn new(separator: u8) -> Self {
        let reader = ReaderBuilder::new().delimiter(separator).build();
        Self { reader, text: Vec::new(), ends: vec![0; 64], columns: 0 }
    }

    /// Reads one record, which may hold quoted line ends.
    fn read(&mut self, line: &[u8]) -> Result<(), String> {
        self.columns = 0;
        self.text.resize(self.text.len().max(line.len() + 1), 0);
        self.reader.reset();
        let (mut input, mut length) = (line, 0);
        loop {
            let (result, read, written, ends) = self.reader.read_record(
                input,
                &mut self.text[length..],
                &mut self.ends[self.columns..],
            );
            input = &input[read..];
            length += written;
            self.columns += ends;
            match result {
                // With nothing left, an empty input says that this is the end.
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputEndsFull if self.ends.len() < COLUMNS_MAX => {
                    self.ends.resize(self.ends.len() * 2, 0);
                }
                ReadRecordResult::OutputEndsFull | ReadRecordResult::OutputFull => {
                    return Err(format!("more than {COLUMNS_MAX} columns"));
                }
                ReadRecordResult::Record | ReadRecordResult::End => break,
            }
        }
        if !input.is_empty() {
            return Err("a quote is not closed".to_owned());
        }
        let text = self.text.get(..length).unwrap_or_default();
        std::str::from_utf8(text).map_err(|_| "the line is not UTF-8".to_owned())?;
        Ok(())
    }

    fn len(&self) -> usize {
        self.columns
    }

    /// A column; empty when there is none.
    fn get(&self, index: usize) -> &str {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        let column = (index < self.columns).then(|| self.text.get(start..self.ends[index]));
        std::str::from_utf8(column.flatten().unwrap_or_default()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::import::intake::{read_all, testing};

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
    fn the_usual_columns_are_found() {
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
        let two = |one: &str, two: &str| [format!("{one}{room} 1"), format!("{two}{room} 2")];
        let check = |columns, expected: [String; 2]| {
            check(text, columns, &[&expected[0], &expected[1]]);
        };
        check(columns(None, &["in", "out"]), two("in", "out"));
        check(columns(Some("net"), &["in", "out"]), two("net_in", "net_out"));
        check(columns(Some("room"), &["in", "out"]), two("lab_in", "lab_out"));
        let one = [&*format!("net{room} 2")];
        super::tests::check(text, columns(Some("net"), &["out"]), &one);
    }

    #[test]
    fn a_bad_line_is_named_and_spoils_no_other() {
        let text = "time,metric,value\n1,a,1\n2,a\n3,a,x\nnow,a,1\n\n5,\"a,1\n6,a,6\n";
        let (kept, _) = testing::read(&mut Csv::new(text.as_bytes(), Columns::default()));
        assert_eq!(kept.samples, ["a gauge  1000 1", "a gauge  6000 6"]);
        let places: Vec<_> = kept.refused.iter().map(|own| own.split(' ').next()).collect();
        assert_eq!(places, [Some("3"), Some("4"), Some("5"), Some("7")]);
    }

    #[test]
    fn a_header_that_does_not_fit_is_an_error_that_names_the_option() {
        let fault = |text: &str, columns: Columns| {
            let mut source = Csv::new(text.as_bytes(), columns);
            let mut kept = testing::Kept::default();
            read_all(&mut source, "a".into(), None, &mut kept).1.unwrap_err().to_string()
        };
        assert!(fault("a,b\n", Columns::default()).contains("say --csv-time; the header has a, b"));
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
                let mut kept = testing::Kept::default();
                drop(read_all(&mut source, "a".into(), None, &mut kept));
            }
        }

        #[test]
        fn any_text_comes_back(value in "[ -~\n]{0,20}") {
            let text = format!("time,value,tag\n5,1,\"{}\"\n", value.replace('"', "\"\""));
            let (kept, _) = testing::read(&mut Csv::new(text.as_bytes(), Columns::default()));
            let tag = if value.is_empty() { String::new() } else { format!("{{tag={value:?}}}") };
            prop_assert_eq!(kept.samples, [format!("value{tag} gauge  5000 1")]);
        }
    }
}
