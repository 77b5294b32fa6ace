//! OpenMetrics and Prometheus text with timestamps (the OpenMetrics 1.0 specification;
//! prometheus.io, "Exposition formats"), including the output of `promtool tsdb dump`, which has no
//! name before the braces, and milliseconds.

use std::io::BufRead;

use granary_exposition::{Families, Names, cut, parts};

use super::{Location, NO_TIME, Source, SourceFault, lines::Lines, time};
use crate::{
    ingest::{
        rows::{DescribedSeries, Rows},
        series_cache::Fingerprint,
    },
    model::{SeriesKey, SeriesLimits},
    policy::RefusalReason,
};

const PROTOCOL: u8 = 64;

/// A file of OpenMetrics text.
#[derive(Debug)]
pub struct OpenMetrics<R> {
    lines: Lines<R>,
    families: Families,
}

impl<R: BufRead> OpenMetrics<R> {
    /// Creates a source from a reader.
    pub fn new(input: R) -> Self {
        Self { lines: Lines::new(input), families: Families::default() }
    }
}

impl<R: BufRead> Source for OpenMetrics<R> {
    fn read(&mut self, rows: &mut Rows<'_>) -> Result<Option<Location>, SourceFault> {
        let Some(location) = self.lines.next_or_refuse(|_| false, rows)? else { return Ok(None) };
        let line = self.lines.text.trim_ascii();
        if let Some(comment) = line.strip_prefix(b"#") {
            // Comments that do not describe a family are ignored.
            let _noted = self.families.note(&String::from_utf8_lossy(comment));
        } else if !line.is_empty()
            && let Err(problem) = read_line(line, &self.families, rows)
        {
            rows.refuse(RefusalReason::BadSample, 1, || problem);
        }
        Ok(Some(location))
    }
}

fn read_line(line: &[u8], families: &Families, rows: &mut Rows<'_>) -> Result<(), String> {
    let cut = cut(line).map_err(|problem| fault_text(problem, line))?;
    let at = match cut.time {
        None => NO_TIME,
        Some(word) => {
            time::number(word).ok_or_else(|| fault_text("the time is not a number", line))?
        }
    };
    let target = rows.series(Fingerprint::new(PROTOCOL, cut.series), |limits| {
        describe(cut.series, families, limits)
    });
    rows.push(target, at, cut.value, 0);
    Ok(())
}

fn fault_text(problem: &str, line: &[u8]) -> String {
    format!("{problem}: {:?}", String::from_utf8_lossy(&line[..line.len().min(200)]))
}

fn describe(
    series: &[u8],
    families: &Families,
    limits: &SeriesLimits,
) -> Result<DescribedSeries, String> {
    let parts = parts(series, Names::Any).map_err(|problem| fault_text(problem, series))?;
    let pairs = parts.labels.iter().map(|(name, value)| (&**name, &**value));
    let key = SeriesKey::new(&parts.metric, pairs, limits).map_err(|cause| cause.to_string())?;
    let family = families.find(&parts.metric).cloned().unwrap_or_default();
    let kind = family.kind_of(&parts.metric);
    Ok(DescribedSeries {
        key,
        kind,
        unit: family.unit_of(&parts.metric).into(),
        is_declared: false,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::import::intake::testing;

    fn samples(text: &str) -> Vec<String> {
        let (kept, tally) = testing::read(&mut OpenMetrics::new(text.as_bytes()));
        assert_eq!(kept.refused, Vec::<String>::new());
        assert_eq!(tally.samples, kept.samples.len() as u64);
        kept.samples
    }

    #[test]
    fn openmetrics_and_prometheus_text_are_read_with_types_units_escapes_and_exemplars() {
        let decoded = samples(
            "# HELP http_requests The number.\n# TYPE http_requests counter\n\
             # UNIT http_requests requests\n\
             http_requests_total{code=\"200\",path=\"a\\\\b\\\"}\"} 5 1795264496.5 # {id=\"x\"} 1 2\n\
             http_requests_created{code=\"200\"} 1 1795264496\n\
             # TYPE depth gauge\ndepth_total 1e+06 1795264496000\n\
             # TYPE lat histogram\nlat_bucket{le=\"+Inf\",} 3 1795264497\nlat_sum 2.5 1795264497\n\
             odd { a = \"1\" , b=\"2\" } -3 1795264497\n\
             {__name__=\"up\", job=\"x y\"} 1 1795264496123\n\
             {\"dotted.name\", \"a b\"=\"1\"} 2 1795264497\n\n# EOF\n",
        );
        let expected = [
            r#"http_requests_total{code="200",path="a\\b\"}"} counter requests 1795264496500 5"#,
            r#"http_requests_created{code="200"} gauge requests 1795264496000 1"#,
            // The declared type takes precedence over the name.
            "depth_total gauge  1795264496000 1000000",
            r#"lat_bucket{le="+Inf"} counter  1795264497000 3"#,
            "lat_sum counter  1795264497000 2.5",
            r#"odd{a="1",b="2"} gauge  1795264497000 -3"#,
            r#"up{job="x y"} gauge  1795264496123 1"#,
            r#"dotted.name{a b="1"} gauge  1795264497000 2"#,
        ];
        assert_eq!(decoded, expected);
    }

    #[test]
    fn a_bad_line_is_refused_with_its_number_and_affects_no_other() {
        let text = "a 1 1795264496\nb\nc x 1\nd{a=\"1 1 1\ne{a=1} 1 1795264496\nf 1\n\
                    g 1 1795264496 7\nh_total NaN 1795264496\ni{a=\"1\",a=\"2\"} 1 1795264496\n\
                    y NaN 1795264496\nz 2 1795264496\n";
        let (kept, tally) = testing::read(&mut OpenMetrics::new(text.as_bytes()));
        assert_eq!(
            kept.samples,
            ["a gauge  1795264496000 1", "y gauge  1795264496000 NaN", "z gauge  1795264496000 2"]
        );
        assert_eq!(tally.samples, 11);
        let mut counted: Vec<_> = kept
            .refused
            .iter()
            .map(|line| line.splitn(4, ' ').take(3).collect::<Vec<_>>().join(" "))
            .collect();
        counted.sort_by_key(|line| (line.chars().next(), line.contains(" 0")));
        assert_eq!(
            counted,
            [
                "2 bad_sample 1",
                "3 bad_sample 1",
                "4 bad_sample 1",
                "5 bad_series 1",
                "5 bad_series 0",
                "6 bad_sample 1",
                "7 bad_sample 1",
                "8 not_finite 1",
                "9 bad_series 1",
                "9 bad_series 0",
            ]
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            text in r#"(([a-z]{0,2}[{]?([a-z"=\\,} ]{0,9})[}]?|[#] TYPE a) [0-9. ]{0,6}\n){0,6}"#,
        ) {
            for input in [&bytes[..], text.as_bytes()] {
                testing::read(&mut OpenMetrics::new(input));
            }
        }

        #[test]
        fn label_values_are_preserved(value in "\\PC{1,12}", number in prop::num::f64::NORMAL | prop::num::f64::ZERO, at in 1..9_999_999_999_i64) {
            let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let decoded = samples(&format!("m{{a=\"{escaped}\"}} {number} {at}\n"));
            prop_assert_eq!(decoded, [format!("m{{a={value:?}}} gauge  {} {number}", at * 1000)]);
        }
    }
}
