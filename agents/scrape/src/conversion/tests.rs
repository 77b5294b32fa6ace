//! Samples of responses, compared with Prometheus' results for the same responses.

use granary_protocol::is_stale_marker;

use super::*;
use crate::{config::Config, memory::MEMORY_MAX};

fn job(yaml: &str) -> Job {
    let text = format!("scrape_configs:\n- job_name: j\n{yaml}");
    Config::parse(&text, "".into()).unwrap().jobs()[0].clone()
}

struct TestTarget {
    job: Job,
    target: Target,
    external_labels: Labels,
    series: TargetSeries,
}

impl TestTarget {
    fn new(yaml: &str) -> Self {
        let job = job(yaml);
        let discovered_labels = [("__address__", "h:1"), ("env", "t")].into_iter().collect();
        let target = Target::new(&job, &discovered_labels).unwrap().unwrap();
        let external_labels = [("monitor", "m"), ("env", "x")].into_iter().collect();
        Self::with_memory(&Memory::new(MEMORY_MAX), job, target, external_labels)
    }

    fn with_memory(
        memory: &Arc<Memory>,
        job: Job,
        target: Target,
        external_labels: Labels,
    ) -> Self {
        Self { job, target, external_labels, series: TargetSeries::new(memory) }
    }

    fn convert(&mut self, text: &str, time_ms: i64) -> Result<ConversionResult, (u64, String)> {
        self.convert_stream(&mut text.as_bytes(), time_ms)
    }

    fn convert_stream(
        &mut self,
        answer: &mut dyn Read,
        time_ms: i64,
    ) -> Result<ConversionResult, (u64, String)> {
        let answer = (answer, Format::Prometheus);
        self.series.convert((&self.job, &self.target), &self.external_labels, answer, time_ms)
    }

    /// Returns `series value time` of each accepted sample.
    fn convert_to_lines(&mut self, text: &str, time_ms: i64) -> Vec<String> {
        self.convert(text, time_ms).unwrap().samples.readings.iter().map(line_of).collect()
    }
}

fn line_of(reading: &KnownReading) -> String {
    let series = &reading.series;
    let tags: Vec<_> = series
        .tags()
        .filter(|(name, _)| !["instance", "job", "env", "monitor"].contains(name))
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let value =
        if is_stale_marker(reading.value) { "ends".to_owned() } else { reading.value.to_string() };
    format!(
        "{}{{{}}} {} {value} {}",
        series.metric(),
        tags.join(","),
        series.kind(),
        reading.time_ms
    )
}

#[test]
fn samples_get_the_labels_of_their_target_and_the_kind_of_their_family() {
    let mut scraped_target = TestTarget::new("");
    let result = scraped_target.convert("# TYPE c counter\nc{a=\"b\"} 1\ng NaN 77\n", 5).unwrap();
    assert_eq!((result.samples_scraped, result.samples_kept, result.series_added), (2, 2, 2));
    let lines: Vec<_> = result.samples.readings.iter().map(line_of).collect();
    assert_eq!(lines, ["c{a=b} counter 1 5", "g{} gauge NaN 77"]);
    let all = [("a", "b"), ("env", "t"), ("instance", "h:1"), ("job", "j"), ("monitor", "m")];
    assert_eq!(result.samples.readings[0].series.tags().collect::<Vec<_>>(), all);
    // The second response only contains a known series.
    let first = Arc::clone(&result.samples.readings[0].series);
    let result = scraped_target.convert("# TYPE c counter\nc{a=\"b\"} 2\n", 6).unwrap();
    assert!(Arc::ptr_eq(&first, &result.samples.readings[0].series));
    assert_eq!(result.series_added, 0);
}

#[test]
fn the_target_wins_a_label_conflict_or_with_honor_labels_the_sample() {
    let text = "m{job=\"own\",exported_job=\"x\",instance=\"\"} 1\n";
    let tags = |yaml| {
        let mut scraped_target = TestTarget::new(yaml);
        let result = scraped_target.convert(text, 1).unwrap();
        let tags = result.samples.readings[0].series.tags();
        tags.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        tags(""),
        "env=t exported_exported_job=own exported_job=x instance=h:1 job=j monitor=m"
    );
    assert_eq!(
        tags("  honor_labels: true\n"),
        "env=t exported_job=x instance=h:1 job=own monitor=m"
    );
}

#[test]
fn timestamps_of_the_target_are_used_only_with_honor_timestamps() {
    let mut scraped_target = TestTarget::new("  honor_timestamps: false\n");
    assert_eq!(scraped_target.convert_to_lines("m 1 77\n", 5), ["m{} gauge 1 5"]);
    assert_eq!(scraped_target.convert_to_lines("\n", 6), ["m{} gauge ends 6"]);
    let mut scraped_target = TestTarget::new("");
    assert_eq!(
        scraped_target.convert_to_lines("m 1 77\nm 2 78\n", 5),
        ["m{} gauge 1 77", "m{} gauge 2 78"]
    );
    assert_eq!(
        scraped_target.convert_to_lines("\n", 6),
        [] as [&str; 0],
        "a series with a timestamp does not end"
    );
    let mut scraped_target = TestTarget::new("  track_timestamps_staleness: true\n");
    assert_eq!(scraped_target.convert_to_lines("m 1 77\n", 5), ["m{} gauge 1 77"]);
    assert_eq!(scraped_target.convert_to_lines("\n", 6), ["m{} gauge ends 6"]);
}

/// Returns a response with one histogram: native with 3 observations, or with a classic bucket.
fn histogram_response(kind: u8, is_native: bool) -> Vec<u8> {
    // One observation in each of the buckets 5 to 7.
    let native: &[u8] = &[8, 3, 5 << 3, 4, 12 << 3 | 2, 4, 8, 10, 16, 3, 13 << 3 | 2, 3, 2, 0, 0];
    let classic: &[u8] = &[8, 3, 3 << 3 | 2, 2, 8, 3];
    let histogram = if is_native { native } else { classic };
    let length = histogram.len() as u8;
    let metric = [&[7 << 3 | 2, length], histogram].concat();
    let family = [&[10, 1, b'h', 3 << 3, kind, 4 << 3 | 2, length + 2], &metric[..]].concat();
    [&[family.len() as u8], &family[..]].concat()
}

#[test]
fn a_native_histogram_is_one_sample_and_its_series_ends() {
    let mut scraped_target = TestTarget::new("  scrape_native_histograms: true\n");
    let mut convert = |body: &[u8], time_ms| {
        let format = Format::Protobuf;
        let TestTarget { job, target, external_labels, series } = &mut scraped_target;
        let answer = (&mut &*body as &mut dyn Read, format);
        let found = series.convert((job, target), external_labels, answer, time_ms).unwrap();
        let readings = found.samples.readings;
        let buckets = readings.iter().flat_map(|reading| &reading.histogram);
        let buckets: Vec<_> = buckets.map(|histogram| histogram.positive.len()).collect();
        (readings.iter().map(line_of).collect::<Vec<_>>().join(" | "), buckets)
    };
    let check = |(lines, buckets): (String, Vec<usize>), expected: &str, histograms: &[usize]| {
        assert_eq!((&*lines, &*buckets), (expected, histograms));
    };
    check(convert(&histogram_response(4, true), 1), "h{} histogram 3 1", &[3]);
    check(convert(&histogram_response(5, true), 2), "h{} gaugehistogram 3 2", &[3]);
    check(convert(&[], 3), "h{} gaugehistogram ends 3", &[]);
    let classic = "h_bucket{le=0.0} counter 3 4 | h_bucket{le=+Inf} counter 3 4 | \
                   h_sum{} counter 0 4 | h_count{} counter 3 4";
    check(convert(&histogram_response(4, false), 4), classic, &[]);
}

#[test]
fn a_missing_series_ends_once_and_can_return() {
    let mut scraped_target = TestTarget::new("");
    scraped_target.convert_to_lines("a 1\nb 1\na 9\n", 1);
    assert_eq!(scraped_target.convert_to_lines("a 2\n", 2), ["a{} gauge 2 2", "b{} gauge ends 2"]);
    assert_eq!(scraped_target.convert_to_lines("a 3\n", 3), ["a{} gauge 3 3"]);
    let result = scraped_target.convert("b 4\na 4\n", 4).unwrap();
    assert_eq!(result.series_added, 1);
    let mut stale_lines: Vec<_> =
        scraped_target.series.end_all(5).readings.iter().map(line_of).collect();
    stale_lines.sort();
    assert_eq!(stale_lines, ["a{} gauge ends 5", "b{} gauge ends 5"]);
    assert_eq!(scraped_target.series.end_all(6).readings.len(), 0);
}

#[test]
fn an_invalid_response_is_discarded_and_only_sent_series_end() {
    let mut scraped_target = TestTarget::new("");
    scraped_target.convert_to_lines("a 1\n", 1);
    let (samples_scraped, fault) = scraped_target.convert("a 2\nnew 1\nb x\n", 2).unwrap_err();
    assert_eq!(samples_scraped, 2);
    assert!(fault.starts_with("line 3: "), "{fault}");
    let stale_lines: Vec<_> =
        scraped_target.series.end_all(2).readings.iter().map(line_of).collect();
    assert_eq!(stale_lines, ["a{} gauge ends 2"], "a series that was never sent does not end");
}

#[test]
fn rules_drop_and_rewrite_samples() {
    let mut scraped_target = TestTarget::new(
        "  metric_relabel_configs:
  - {source_labels: [__name__], regex: 'go_.*', action: drop}
  - {source_labels: [__name__], regex: 'old_(.*)', target_label: __name__, replacement: 'new_$1'}
  - {regex: 'secret', action: labeldrop}\n",
    );
    let text = "go_x 1\nold_m{secret=\"s\",a=\"b\"} 2\n";
    for time in 1..3 {
        let result = scraped_target.convert(text, time).unwrap();
        assert_eq!((result.samples_scraped, result.samples_kept), (2, 1));
        assert_eq!(line_of(&result.samples.readings[0]), format!("new_m{{a=b}} gauge 2 {time}"));
    }
}

#[test]
fn a_response_over_a_limit_is_rejected() {
    let check = |yaml: &str, text: &str, expected: &str| {
        let (_, fault) = TestTarget::new(yaml).convert(text, 1).unwrap_err();
        assert!(fault.contains(expected), "{fault}");
    };
    check("  sample_limit: 1\n", "a 1\nb 1\n", "sample_limit of 1");
    check("  label_limit: 4\n", "a{b=\"c\"} 1\n", "5 labels, more than the label_limit of 4");
    check("  label_name_length_limit: 9\n", "a{bbbbbbbbbb=\"c\"} 1\n", "label_name_length_limit");
    check("  label_value_length_limit: 2\n", "a{b=\"ccc\"} 1\n", "label_value_length_limit");
    let dropped = "  sample_limit: 1\n  metric_relabel_configs: [{source_labels: [__name__], regex: a, action: drop}]\n";
    assert_eq!(TestTarget::new(dropped).convert("a 1\nb 1\n", 1).unwrap().samples_kept, 1);
}

#[test]
fn reports_are_series_of_the_target() {
    let mut scraped_target = TestTarget::new("");
    let report =
        Report { is_up: true, seconds: 0.5, samples_scraped: 4, samples_kept: 3, series_added: 2 };
    let TestTarget { target, external_labels, series: answer, .. } = &mut scraped_target;
    let mut samples = answer.memory.samples();
    answer.report(target, external_labels, report, 9, &mut samples);
    let lines: Vec<_> = samples.readings.iter().map(line_of).collect();
    assert_eq!(
        lines,
        [
            "up{} gauge 1 9",
            "scrape_duration_seconds{} gauge 0.5 9",
            "scrape_samples_scraped{} gauge 4 9",
            "scrape_samples_post_metric_relabeling{} gauge 3 9",
            "scrape_series_added{} gauge 2 9",
        ]
    );
    answer.end_reports(10, &mut samples);
    assert_eq!(samples.readings.len(), 10);
}

/// Sends series without end, and counts the bytes that the client reads.
struct EndlessResponse {
    number: u64,
    line: Vec<u8>,
    read: usize,
}

impl Read for EndlessResponse {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.line.is_empty() {
            self.number += 1;
            self.line = format!("some_metric{{number=\"{}\"}} 1\n", self.number).into();
        }
        let bytes = self.line.len().min(buffer.len());
        buffer[..bytes].copy_from_slice(&self.line[..bytes]);
        self.line.drain(..bytes);
        self.read += bytes;
        Ok(bytes)
    }
}

/// Regression: a target with 100 MB was read completely, and the kernel killed the agent at its
/// unit's memory limit.
#[test]
fn a_response_above_the_limit_uses_only_its_share_of_memory_and_releases_it() {
    let memory = Memory::new(4 << 20);
    let TestTarget { job, target, external_labels, .. } = TestTarget::new("");
    let mut huge =
        TestTarget::with_memory(&memory, job.clone(), target.clone(), external_labels.clone());
    let mut small = TestTarget::with_memory(&memory, job, target, external_labels);
    huge.convert_to_lines("known 1\n", 1);
    let mut answer = EndlessResponse { number: 0, line: Vec::new(), read: 0 };
    let (samples_scraped, fault) = huge.convert_stream(&mut answer, 2).unwrap_err();
    assert!(fault.contains("scrape_memory_max") && fault.contains("4194304"), "{fault}");
    assert!(
        (1000..20_000).contains(&samples_scraped) && answer.read < 1 << 20,
        "{samples_scraped}"
    );
    assert!(memory.used() <= 3 << 20, "{}", memory.used());
    assert_eq!(memory.refused(), 1);
    // Other targets are scraped while the huge target holds its memory.
    assert_eq!(small.convert_to_lines("a 1\n", 2), ["a{} gauge 1 2"]);
    let stale_lines: Vec<_> = huge.series.end_all(2).readings.iter().map(line_of).collect();
    assert_eq!(stale_lines, ["known{} gauge ends 2"]);
    assert!(memory.used() < 1000, "{}", memory.used());
    drop((huge, small));
    assert_eq!(memory.used(), 0);
}
