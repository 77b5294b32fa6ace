//! Files of InfluxDB line protocol, with or without the header of `influx_inspect export` (`# DDL`,
//! statements, `# DML`, `# CONTEXT-DATABASE:...`).

use std::io::BufRead;

use influxdb_line_protocol::split_lines;

use super::{Location, NO_TIME, Source, SourceFault, lines::Lines};
use crate::{
    ingest::{
        influx::{Precision, decode},
        rows::Rows,
    },
    policy::RefusalReason,
};

/// A file of line protocol.
#[derive(Debug)]
pub struct Influx<R> {
    lines: Lines<R>,
    precision: Precision,
    /// True in the section of statements that create databases.
    is_in_ddl: bool,
}

impl<R: BufRead> Influx<R> {
    /// Creates a source from a reader; `precision` is the unit of timestamps.
    pub fn new(input: R, precision: Precision) -> Self {
        Self { lines: Lines::new(input), precision, is_in_ddl: false }
    }
}

impl<R: BufRead> Source for Influx<R> {
    fn read(&mut self, rows: &mut Rows<'_>) -> Result<Option<Location>, SourceFault> {
        let Some(location) = self.lines.next_or_refuse(is_open, rows)? else { return Ok(None) };
        let line = self.lines.text.trim_ascii();
        if let Some(comment) = line.strip_prefix(b"#") {
            match comment.trim_ascii() {
                b"DDL" => self.is_in_ddl = true,
                b"DML" => self.is_in_ddl = false,
                _ => {}
            }
        } else if !self.is_in_ddl
            && !is_statement(line)
            && let Err(problem) = decode(line, self.precision, NO_TIME, rows)
        {
            rows.refuse(RefusalReason::BadSample, 1, || problem);
        }
        Ok(Some(location))
    }
}

fn is_statement(line: &[u8]) -> bool {
    line.starts_with(b"CREATE DATABASE ") || line.starts_with(b"CREATE RETENTION POLICY ")
}

/// Returns true when a line ends within a quoted text. Few lines have quotes.
fn is_open(line: &[u8]) -> bool {
    // A line is complete when a following line is split from it.
    line.contains(&b'"')
        && std::str::from_utf8(line).is_ok_and(|text| {
            let probe = format!("{}\nx", text.trim_end_matches(['\r', '\n']));
            split_lines(&probe).count() < 2
        })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::import::intake::testing;

    #[test]
    fn an_export_with_its_header_is_read() {
        let text = "# INFLUXDB EXPORT: 1677-09-21T00:12:43Z - 2262-04-11T23:47:16Z\n# DDL\n\
                    CREATE DATABASE db0 WITH NAME autogen\n# DML\n# CONTEXT-DATABASE:db0\n\
                    # CONTEXT-RETENTION-POLICY:autogen\n# writing tsm data\n\
                    cpu,host=a\\ b value=33.3,requests_total=4i 1464026335000000000\n\
                    cpu,host=a\\ b up=true,note=\"two\nlines, \\\" and = too\",value=1 1464026395000000000\n";
        let (kept, tally) =
            testing::read(&mut Influx::new(text.as_bytes(), Precision::Nanoseconds));
        assert_eq!(
            kept.samples,
            [
                r#"cpu_value{host="a b"} gauge  1464026335000 33.3"#,
                r#"cpu_requests_total{host="a b"} counter  1464026335000 4"#,
                r#"cpu_up{host="a b"} gauge  1464026395000 1"#,
                r#"cpu_value{host="a b"} gauge  1464026395000 1"#,
            ]
        );
        assert_eq!(kept.refused.len(), 1);
        assert!(kept.refused[0].starts_with("9 text_field 1 field note"), "{:?}", kept.refused);
        assert_eq!(tally.samples, 5);
    }

    #[test]
    fn a_bad_line_is_refused_with_its_number_and_affects_no_other() {
        let text = "a v=1 1000\nb v=\"open 1000\nc v=2 1000\nbad\nd v=3\ne v=4 2000";
        let (kept, _) = testing::read(&mut Influx::new(text.as_bytes(), Precision::Seconds));
        let values: Vec<_> = kept.samples.iter().map(|sample| sample.rsplit(' ').next()).collect();
        assert_eq!(values, [Some("1"), Some("2"), Some("4")]);
        let locations: Vec<_> =
            kept.refused.iter().map(|refusal| refusal.split(' ').next()).collect();
        assert_eq!(locations, [Some("2"), Some("4"), Some("5")]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            text in r#"([a,"=\\ ]{0,9}=[0-9"i]{0,3} [0-9]{0,6}\n){0,6}"#,
        ) {
            for input in [&bytes[..], text.as_bytes()] {
                testing::read(&mut Influx::new(input, Precision::Seconds));
            }
        }
    }
}
