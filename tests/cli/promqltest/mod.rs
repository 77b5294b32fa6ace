//! The query tests of Prometheus, run against the real daemon: each `load` is sent by remote write,
//! and each `eval` is queried over HTTP.
//!
//! The scripts are not in this repository (github.com/prometheus/prometheus,
//! promql/promqltest/testdata); `GRANARY_PROMQLTEST` names their folder. Known differences with
//! reasons are listed in `tests/data/promqltest-differences.txt`. The test fails for any other
//! difference, and for a listed difference that disappeared. In scripts without a listed
//! difference, a difference is permitted if a pattern explains it, such as rates of counters.
//! `GRANARY_PROMQLTEST_REPORT` names a file for all differences.

mod answer;
mod histogram;
mod notation;
mod script;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    thread,
};

use answer::Answer;
use notation::{STALE, SequenceItem, Series};
use script::{Block, Eval, EvalTime};

use crate::{
    daemon::{Daemon, client, granularities},
    protobuf::bytes,
    remote_write::{V1, request, series, write},
};

/// Returns settings with which 1s is kept since 1970, the time of the scripts, and in which `load`
/// blocks may come in any order.
fn settings() -> String {
    let spans =
        [["1s", "1m", "1w", "5300w"], ["1m", "1h", "1w", "5300w"], ["1h", "1d", "1w", "5300w"]];
    "ingest.out_of_order_window = '5000w'\npreallocation.enabled = false\n".to_owned()
        + &granularities(&spans)
}

/// The maximum number of series in a request: a `load` may have thousands of samples.
const SERIES_PER_REQUEST: usize = 500;

/// The differences in a script, by the line of the `eval`.
type Differences = BTreeMap<usize, Difference>;

struct Difference {
    eval: String,
    found: String,
    /// The pattern that explains the difference.
    excuse: Option<&'static str>,
}

struct Outcome {
    total: usize,
    differences: Differences,
}

fn scripts_folder() -> PathBuf {
    let folder_name = std::env::var_os("GRANARY_PROMQLTEST").map(PathBuf::from);
    folder_name
        .expect("GRANARY_PROMQLTEST is the folder of promql/promqltest/testdata of Prometheus")
}

#[test]
#[ignore = "needs Prometheus' scripts; GRANARY_PROMQLTEST names their folder"]
fn prometheus_own_query_tests_pass_except_for_listed_differences() {
    let folder = scripts_folder();
    let mut scripts: Vec<_> = fs::read_dir(&folder)
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "test"))
        .collect();
    scripts.sort();
    assert!(!scripts.is_empty(), "no scripts in {}", folder.display());
    let outcomes: Vec<_> = thread::scope(|scope| {
        let runs: Vec<_> = scripts.iter().map(|path| scope.spawn(|| run_script(path))).collect();
        let ended = |run: thread::ScopedJoinHandle<'_, Outcome>| run.join().ok();
        runs.into_iter().map(ended).collect()
    });
    let mut known = known_differences();
    let listed: BTreeSet<_> = known.keys().cloned().collect();
    let (mut report, mut failures) = (String::new(), String::new());
    for (path, outcome) in scripts.iter().zip(&outcomes) {
        let name = path.file_name().unwrap().to_str().unwrap();
        let Some(outcome) = outcome else {
            writeln!(failures, "{name}: its run ended early, see above").unwrap();
            continue;
        };
        let passed = outcome.total - outcome.differences.len();
        eprintln!("promqltest {name}: {passed} of {}", outcome.total);
        let known = known.remove(name).unwrap_or_default();
        for (line, difference) in &outcome.differences {
            let Difference { eval, found, excuse } = difference;
            let excuse = excuse.filter(|_| !listed.contains(name)).unwrap_or("NEW");
            let reason = known.get(line).map_or(excuse, String::as_str);
            writeln!(report, "{name}:{line}: {eval}\n    {found}\n    {reason}").unwrap();
            if reason == "NEW" {
                writeln!(failures, "{name}:{line}: {eval}\n    {found}").unwrap();
            }
        }
        for line in known.keys().filter(|line| !outcome.differences.contains_key(line)) {
            writeln!(failures, "{name}:{line}: is listed as a difference and passes").unwrap();
        }
    }
    eprint!("{report}");
    if let Some(path) = std::env::var_os("GRANARY_PROMQLTEST_REPORT") {
        fs::write(path, &report).unwrap();
    }
    assert!(failures.is_empty(), "{failures}");
}

/// Returns the listed differences: for each script, the reasons by line.
fn known_differences() -> BTreeMap<String, BTreeMap<usize, String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/promqltest-differences.txt");
    let mut differences: BTreeMap<String, BTreeMap<usize, String>> = BTreeMap::new();
    for line in fs::read_to_string(path).unwrap().lines() {
        let Some((items, reason)) = line.split_once(' ').filter(|_| !line.starts_with('#')) else {
            continue;
        };
        let (script, lines) = items.split_once(':').unwrap();
        for line in lines.split(',') {
            let script_differences = differences.entry(script.to_owned()).or_default();
            assert!(
                script_differences.insert(line.parse().unwrap(), reason.to_owned()).is_none(),
                "{script}:{line} is listed twice"
            );
        }
    }
    differences
}

fn run_script(path: &Path) -> Outcome {
    let script = fs::read_to_string(path).unwrap();
    let mut outcome = Outcome { total: 0, differences: Differences::new() };
    let mut daemon = None;
    let mut loaded = LoadedMetrics::default();
    for block in script::parse(&script) {
        let mut add_difference = |line, eval: &str, found, excuse| {
            let eval = eval.to_owned();
            outcome.differences.insert(line, Difference { eval, found, excuse });
        };
        match block {
            Block::Clear => {
                daemon = None;
                loaded = LoadedMetrics::default();
            }
            Block::Load { line, step, series, with_histograms } => {
                loaded.add(&series, with_histograms);
                let daemon = daemon.get_or_insert_with(|| Daemon::start(&settings()));
                if let Err(found) = send_series(daemon, step, &series) {
                    outcome.total += 1;
                    add_difference(line, "load", found, None);
                }
            }
            Block::Unread { line, head, cause } => {
                outcome.total += 1;
                add_difference(line, &head, format!("cannot be read: {cause}"), None);
            }
            Block::Eval(eval) => {
                let daemon = daemon.get_or_insert_with(|| Daemon::start(&settings()));
                outcome.total += 1;
                if let Some(found) = answer::difference(&eval, &run_eval(daemon, &eval)) {
                    add_difference(eval.line, &eval.expression, found, loaded.find_excuse(&eval));
                }
            }
        }
    }
    let lines: BTreeSet<_> = outcome.differences.keys().collect();
    assert!(lines.len() <= outcome.total);
    outcome
}

/// The metrics loaded since the last `clear`.
#[derive(Default)]
struct LoadedMetrics {
    histograms: BTreeSet<String>,
    counters: BTreeSet<String>,
}

impl LoadedMetrics {
    fn add(&mut self, all: &[Series], with_histograms: bool) {
        for line in all {
            let name = line.labels.get("__name__").cloned().unwrap_or_default();
            let family =
                ["_bucket", "_count", "_sum"].iter().find_map(|end| name.strip_suffix(end));
            if let Some(family) = family.filter(|_| with_histograms) {
                self.histograms.insert(family.to_owned());
            }
            if is_counter(&name) {
                self.counters.insert(name);
            }
        }
    }

    /// Returns the reason for which an answer necessarily differs.
    fn find_excuse(&self, eval: &Eval) -> Option<&'static str> {
        let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        let words: Vec<_> = eval.expression.split(|c| !is_name(c)).collect();
        let names = |set: &BTreeSet<String>| words.iter().any(|word| set.contains(*word));
        if names(&self.histograms) {
            return Some("classic histograms are not converted to native ones");
        }
        let rates = ["rate", "increase", "irate", "resets"];
        (rates.iter().any(|rate| words.contains(rate)) && names(&self.counters))
            .then_some("rate and increase are the stored growth, without extrapolation")
    }
}

/// Returns true if remote write treats a metric as a counter because of its name.
fn is_counter(name: &str) -> bool {
    ["_total", "_count", "_sum", "_bucket"].iter().any(|suffix| name.ends_with(suffix))
}

/// Sends the samples of a block as Prometheus would. Non-finite values of counters are left out,
/// because the daemon does not store them. The error names the refused samples.
fn send_series(daemon: &Daemon, step: i64, all: &[Series]) -> Result<(), String> {
    let encoded: Vec<_> = all
        .iter()
        .map(|line| {
            let labels: Vec<_> =
                line.labels.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            let items = line.items.iter().enumerate();
            let samples: Vec<_> = items
                .filter_map(|(index, item)| match item {
                    SequenceItem::Value(value) => Some((index as i64 * step, *value)),
                    SequenceItem::Omitted | SequenceItem::Histogram(_) => None,
                })
                .collect();
            let mut message = series(&labels, &samples);
            for (index, item) in line.items.iter().enumerate() {
                if let SequenceItem::Histogram(histogram) = item {
                    bytes(4, &histogram.message(index as i64 * step), &mut message);
                }
            }
            message
        })
        .collect();
    let mut accepted = 0;
    for part in encoded.chunks(SERIES_PER_REQUEST) {
        let written = write(daemon, V1, &request(part));
        if written.status != 204 {
            return Err(format!("{}: {}", written.status, written.body));
        }
        accepted += written.samples.unwrap_or_default();
    }
    let is_gauge =
        |line: &Series| !is_counter(line.labels.get("__name__").map_or("", String::as_str));
    let storable_samples = |line: &Series| {
        let is_storable = |item: &&SequenceItem| match item {
            SequenceItem::Value(value) => {
                value.is_finite() || value.to_bits() == STALE || is_gauge(line)
            }
            SequenceItem::Omitted | SequenceItem::Histogram(_) => false,
        };
        line.items.iter().filter(is_storable).count() as u64
    };
    let expected: u64 = all.iter().map(storable_samples).sum();
    if accepted == expected { Ok(()) } else { Err(format!("{accepted} samples of {expected}")) }
}

fn run_eval(daemon: &Daemon, eval: &Eval) -> Answer {
    let seconds = |ms: i64| format!("{}", ms as f64 / 1000.0);
    let (path, times) = match eval.when {
        EvalTime::Instant(at) => ("query", vec![("time", seconds(at))]),
        EvalTime::Range { start, end, step } => (
            "query_range",
            vec![("start", seconds(start)), ("end", seconds(end)), ("step", seconds(step))],
        ),
    };
    let form = [("query", eval.expression.clone())].into_iter().chain(times);
    let sent = client().post(format!("{}/api/v1/{path}", daemon.url)).send_form(form);
    let mut response = sent.unwrap_or_else(|cause| panic!("{cause}: {}", daemon.log()));
    let text = response.body_mut().read_to_string().unwrap();
    let body = serde_json::from_str(&text).unwrap_or_else(|cause| panic!("{cause}: {text}"));
    Answer { status: response.status().as_u16(), body }
}
