//! A year of 10,000 series whose hosts are replaced, with a simulated clock, within a few minutes.
//! The output shows values that keep changing after every retention is reached, and compares the
//! disk with the plan.
//!
//!     cargo bench --bench year -- [days=365] [hosts=100] [metrics=100] [interval=1h] [renewal=33h]
//!         [dir=target] [SLOT/DOCUMENT/PARTITION/RETENTION ...]
//!
//! Every `renewal`, a new host replaces another one. A checkpoint follows six samples of each
//! series, about as often as with the daemon's defaults and a sample every minute or two; then
//! sealing, retention and removal of series. The output has a row every 30 days, and the plan next
//! to the used space.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark that prints")]

#[path = "../tests/support/fleet.rs"]
#[allow(dead_code, clippy::panic, reason = "tests use more of it")]
mod fleet;
#[path = "../tests/support/setup.rs"]
#[allow(dead_code, clippy::panic, reason = "tests use more of it")]
mod setup;

use std::{collections::BTreeMap, fs, path::Path};

use fleet::{Run, Simulation, disk_usage, sizes};
use granary::{
    clock::Stopwatch,
    model::{Span, UnixMillis},
};
use setup::{DAY, granularities};

/// The daemon's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// 2026-01-05T00:00:00Z, a Monday.
const BEGIN: UnixMillis = UnixMillis(1_767_571_200_000);
const ROW_DAYS: i64 = 30;
const SPANS: [&str; 3] = ["1h/1d/1w/4w", "6h/1w/4w/8w", "1d/4w/4w/16w"];
/// The columns of a row, in this order, with their units.
const COLUMNS: [(&str, f64); 14] = [
    ("series", 1.0),
    ("ids", 1.0),
    ("senders", 1.0),
    ("files", 1.0),
    ("partitions", 1e6),
    ("head", 1e6),
    ("journal", 1e6),
    ("objects", 1e6),
    ("dictionary", 1e6),
    ("index", 1e6),
    ("states", 1e6),
    ("times_seen", 1e6),
    ("cells", 1e6),
    ("cache", 1e6),
];

struct Arguments {
    days: i64,
    run: Run,
    dir: String,
}

fn parse_arguments() -> Arguments {
    let (mut options, mut spans) = (BTreeMap::new(), Vec::new());
    // Cargo adds --bench.
    for argument in std::env::args().skip(1).filter(|argument| !argument.starts_with("--")) {
        match argument.split_once('=') {
            Some((name, value)) => drop(options.insert(name.to_owned(), value.to_owned())),
            None => spans.push(argument),
        }
    }
    if spans.is_empty() {
        spans = SPANS.map(str::to_owned).to_vec();
    }
    println!("granularities {}", spans.join(" "));
    let parts = |spans: &String| {
        let parts: Vec<String> = spans.split('/').map(str::to_owned).collect();
        <[String; 4]>::try_from(parts).unwrap()
    };
    let parts: Vec<_> = spans.iter().map(parts).collect();
    let spans: Vec<_> = parts.iter().map(|span| span.each_ref().map(String::as_str)).collect();
    let text =
        |name: &str, default: &str| options.get(name).map_or(default, String::as_str).to_owned();
    let length = |name: &str, default| text(name, default).parse::<Span>().unwrap().longest_ms();
    let run = Run {
        set: granularities(&spans),
        rules: Vec::new(),
        hosts: text("hosts", "100").parse().unwrap(),
        metrics: text("metrics", "100").parse().unwrap(),
        interval_ms: length("interval", "1h"),
        samples_a_checkpoint: 6,
        renewal_ms: length("renewal", "33h"),
    };
    Arguments { days: text("days", "365").parse().unwrap(), run, dir: text("dir", "target") }
}

fn resident_bytes() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() * 1024.0
}

fn print_row(simulation: &mut Simulation, folder: &Path, seconds: f64) {
    let sizes = sizes(&simulation.store, folder);
    let cells = COLUMNS.map(|(name, unit)| {
        let digits = if unit > 1.0 { 2 } else { 0 };
        format!("{:.digits$}", sizes[name] as f64 / unit)
    });
    let days = (simulation.now.0 - BEGIN.0) / DAY;
    let longest = std::mem::take(&mut simulation.checkpoint_longest) * 1e3;
    let resident = resident_bytes() / 1e6;
    println!("| {days} | {} | {resident:.1} | {longest:.0} | {seconds:.0} |", cells.join(" | "));
}

fn print_plan_comparison(simulation: &Simulation, folder: &Path) {
    let run = &simulation.run;
    let plan = run.plan(&[], simulation.now.0 - BEGIN.0);
    println!("\n| on disk | planned, MB | used, MB | used / planned |\n|---|---|---|---|");
    let line = |what: &str, planned: u64, used: u64| {
        let share = used as f64 / planned as f64;
        println!(
            "| {what} | {:.1} | {:.1} | {share:.2} |",
            planned as f64 / 1e6,
            used as f64 / 1e6
        );
    };
    for granularity in &plan.granularities {
        line(
            &granularity.name,
            granularity.bytes,
            disk_usage(&folder.join("partitions").join(&granularity.name)).0,
        );
    }
    line("head", plan.head, simulation.store.head_bytes());
    line("journal", plan.journal, simulation.store.journal_bytes());
    line("all", plan.disk(), disk_usage(folder).0);
}

fn main() {
    let Arguments { days, run, dir } = parse_arguments();
    let folder = tempfile::tempdir_in(dir).unwrap();
    let folder = folder.path();
    println!(
        "{} series, a sample each {} s, checkpoint each {} h, another host each {} h; every \
         retention is reached after {} days",
        run.hosts * run.metrics,
        run.interval_ms / 1000,
        run.checkpoint_ms() / 3_600_000,
        run.renewal_ms / 3_600_000,
        run.steady_after_ms() / DAY,
    );
    let names =
        COLUMNS.map(|(name, unit)| if unit > 1.0 { format!("{name}, MB") } else { name.into() });
    println!("| days | {} | resident, MB | checkpoint, ms | seconds |", names.join(" | "));
    println!("|{}", "---|".repeat(COLUMNS.len() + 4));
    let watch = Stopwatch::start();
    let mut simulation = Simulation::new(folder, run, BEGIN);
    for day in 1..=days {
        while simulation.now.0 < BEGIN.0 + day * DAY {
            simulation.step();
        }
        if day % ROW_DAYS == 0 || day == days {
            print_row(&mut simulation, folder, watch.seconds());
        }
    }
    print_plan_comparison(&simulation, folder);
    let (_, seconds) = simulation.restart(folder);
    println!("\nopened again in {seconds:.2} s");
}
