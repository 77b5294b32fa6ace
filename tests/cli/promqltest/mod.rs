//! Prometheus' own query tests, run against the real daemon: each `load` is sent by remote write,
//! each `eval` queried over HTTP.
//!
//! The scripts are not in this repository (github.com/prometheus/prometheus,
//! promql/promqltest/testdata); `GRANARY_PROMQLTEST` names their folder. Known differences, with
//! reasons, are in `tests/data/promqltest-differences.txt`; any other difference fails, and so does
//! a known difference that disappeared. In scripts that are not listed, one is permitted if a
//! pattern explains it: native histograms, or rates of counters. `GRANARY_PROMQLTEST_REPORT` names
//! a file for all differences.

mod answer;
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
    remote_write::{V1, request, series, write},
};

/// 1s is kept since 1970, the time of the scripts, and `load` blocks may come in any order. Names
/// are removed as late as in upstream's tests of its engine.
fn settings() -> String {
    let spans =
        [["1s", "1m", "1w", "5300w"], ["1m", "1h", "1w", "5300w"], ["1h", "1d", "1w", "5300w"]];
    "ingest.out_of_order_window = '5000w'\npreallocation.enabled = false\n".to_owned()
        + &granularities(&spans)
}

/// A `load` may have thousands of samples, and requests are limited.
const SERIES_PER_REQUEST: usize = 500;

/// The differences in a script, by the line of the `eval`.
type Differences = BTreeMap<usize, Difference>;

struct Difference {
    eval: String,
    found: String,
    /// The explanation by a pattern.
    excuse: Option<&'static str>,
}

struct Outcome {
    total: usize,
    differences: Differences,
}

fn folder() -> PathBuf {
    let given = std::env::var_os("GRANARY_PROMQLTEST").map(PathBuf::from);
    given.expect("GRANARY_PROMQLTEST is the folder of promql/promqltest/testdata of Prometheus")
}

#[test]
#[ignore = "needs Prometheus' scripts; GRANARY_PROMQLTEST names their folder"]
fn prometheus_own_query_tests_pass_except_for_listed_differences() {
    let folder = folder();
    let mut scripts: Vec<_> = fs::read_dir(&folder)
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "test"))
        .collect();
    scripts.sort();
    assert!(!scripts.is_empty(), "no scripts in {}", folder.display());
    let outcomes: Vec<_> = thread::scope(|scope| {
        let runs: Vec<_> = scripts.iter().map(|path| scope.spawn(|| run(path))).collect();
        let ended = |run: thread::ScopedJoinHandle<'_, Outcome>| run.join().ok();
        runs.into_iter().map(ended).collect()
    });
    let mut known = known_differences();
    let listed: BTreeSet<_> = known.keys().cloned().collect();
    let (mut report, mut wrong) = (String::new(), String::new());
    for (path, outcome) in scripts.iter().zip(&outcomes) {
        let name = path.file_name().unwrap().to_str().unwrap();
        let Some(outcome) = outcome else {
            writeln!(wrong, "{name}: its run ended early, see above").unwrap();
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
                writeln!(wrong, "{name}:{line}: {eval}\n    {found}").unwrap();
            }
        }
        for line in known.keys().filter(|line| !outcome.differences.contains_key(line)) {
            writeln!(wrong, "{name}:{line}: is listed as a difference and passes").unwrap();
        }
    }
    eprint!("{report}");
    if let Some(path) = std::env::var_os("GRANARY_PROMQLTEST_REPORT") {
        fs::write(path, &report).unwrap();
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// The known differences: reasons by line, by script.
fn known_differences() -> BTreeMap<String, BTreeMap<usize, String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/promqltest-differences.txt");
    let mut out: BTreeMap<String, BTreeMap<usize, String>> = BTreeMap::new();
    for line in fs::read_to_string(path).unwrap().lines() {
        let Some((items, reason)) = line.split_once(' ').filter(|_| !line.starts_with('#')) else {
            continue;
        };
        let (script, lines) = items.split_once(':').unwrap();
        for line in lines.split(',') {
            let of_script = out.entry(script.to_owned()).or_default();
            assert!(
                of_script.insert(line.parse().unwrap(), reason.to_owned()).is_none(),
                "{script}:{line} is listed twice"
            );
        }
    }
    out
}

fn run(path: &Path) -> Outcome {
    let script = fs::read_to_string(path).unwrap();
    let mut outcome = Outcome { total: 0, differences: Differences::new() };
    let mut daemon = None;
    let mut loaded = LoadedMetrics::default();
    for block in script::parse(&script) {
        let mut differs = |line, eval: &str, found, excuse| {
            let eval = eval.to_owned();
            outcome.differences.insert(line, Difference { eval, found, excuse });
        };
        match block {
            Block::Clear => {
                daemon = None;
                loaded = LoadedMetrics::default();
            }
            Block::Load { line, step, series, with_histograms } => {
                loaded.note(&series, with_histograms);
                let daemon = daemon.get_or_insert_with(|| Daemon::start(&settings()));
                if let Err(found) = load(daemon, step, &series) {
                    outcome.total += 1;
                    differs(line, "load", found, None);
                }
            }
            Block::Unread { line, head, cause } => {
                outcome.total += 1;
                differs(line, &head, format!("cannot be read: {cause}"), None);
            }
            Block::Eval(eval) => {
                let daemon = daemon.get_or_insert_with(|| Daemon::start(&settings()));
                outcome.total += 1;
                if let Some(found) = answer::difference(&eval, &ask(daemon, &eval)) {
                    differs(eval.line, &eval.expression, found, loaded.excuse(&eval));
                }
            }
        }
    }
    let lines: BTreeSet<_> = outcome.differences.keys().collect();
    assert!(lines.len() <= outcome.total);
    outcome
}

/// Metrics loaded since the last `clear`.
#[derive(Default)]
struct LoadedMetrics {
    histograms: BTreeSet<String>,
    counters: BTreeSet<String>,
}

impl LoadedMetrics {
    fn note(&mut self, all: &[Series], with_histograms: bool) {
        for line in all {
            let name = line.labels.get("__name__").cloned().unwrap_or_default();
            if line.items.contains(&SequenceItem::Histogram) {
                self.histograms.insert(name.clone());
            }
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

    /// The reason for which an answer necessarily differs.
    fn excuse(&self, eval: &Eval) -> Option<&'static str> {
        let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        let words: Vec<_> = eval.expression.split(|c| !is_name(c)).collect();
        let names = |set: &BTreeSet<String>| words.iter().any(|word| set.contains(*word));
        let expected = eval.expected.series.iter().flat_map(|series| &series.items);
        if names(&self.histograms)
            || expected.into_iter().any(|item| *item == SequenceItem::Histogram)
        {
            return Some("native histograms are not kept");
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

/// Sends the samples of a block as Prometheus would. Native histograms and non-finite values of
/// counters are left out, as they are not kept. The error names the refused samples.
fn load(daemon: &Daemon, step: i64, all: &[Series]) -> Result<(), String> {
    let encoded: Vec<_> = all
        .iter()
        .map(|line| {
            let labels: Vec<_> =
                line.labels.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            let items = line.items.iter().enumerate();
            let samples: Vec<_> = items
                .filter_map(|(index, item)| match item {
                    SequenceItem::Value(value) => Some((index as i64 * step, *value)),
                    SequenceItem::Omitted | SequenceItem::Histogram => None,
                })
                .collect();
            series(&labels, &samples)
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
    let kept = |line: &Series| {
        let is_kept = |item: &&SequenceItem| match item {
            SequenceItem::Value(value) => {
                value.is_finite() || value.to_bits() == STALE || is_gauge(line)
            }
            SequenceItem::Omitted | SequenceItem::Histogram => false,
        };
        line.items.iter().filter(is_kept).count() as u64
    };
    let expected: u64 = all.iter().map(kept).sum();
    if accepted == expected { Ok(()) } else { Err(format!("{accepted} samples of {expected}")) }
}

fn ask(daemon: &Daemon, eval: &Eval) -> Answer {
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
