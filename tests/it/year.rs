//! A fleet with changing hosts over a long time: once every retention is reached, nothing grows.
//! `benches/year.rs` does the same with 10,000 series for a year.

use std::{collections::BTreeMap, path::Path};

use granary::{model::UnixMillis, policy::fleet_plan::Plan};

use crate::{
    fleet::{Run, Simulation, disk_usage, sizes},
    setup::{DAY, HOUR, MINUTE, granularities, retention_rule},
};

/// 2026-09-12T00:00:00Z
const START: UnixMillis = UnixMillis(1_789_171_200_000);

#[test]
fn nothing_grows_after_every_retention_is_reached_although_hosts_change() {
    let run = Run {
        set: granularities(&[["10m", "1h", "2h", "4h"], ["1h", "4h", "4h", "12h"]]),
        rules: Vec::new(),
        hosts: 8,
        metrics: 25,
        interval_ms: 10 * MINUTE,
        samples_a_checkpoint: 3,
        renewal_ms: 2 * HOUR,
    };
    let dir = tempfile::tempdir().unwrap();
    let mut simulation = Simulation::new(dir.path(), run, START);
    let settled = simulation.run.steady_after_ms();
    // The maximum of each number, in the first and in the last 12 hours after it settled.
    let mut most = [BTreeMap::new(), BTreeMap::new()];
    while simulation.now.0 < START.0 + settled + 24 * HOUR {
        simulation.step();
        let since = simulation.now.0 - START.0 - settled;
        if since >= 0 {
            for (what, size) in sizes(&simulation.store, dir.path()) {
                let most = most[usize::from(since >= 12 * HOUR)].entry(what).or_default();
                *most = size.max(*most);
            }
        }
    }
    let [before, after] = most;
    // IDs are not reused: of each ID, only an entry in these tables remains.
    assert_eq!(after["ids"] - before["ids"], 6 * 25);
    let is_flat = |what: &str| after[what] <= before[what] + before[what] / 20;
    let per_id = ["ids", "dictionary", "states", "times_seen", "journal", "senders"];
    let flat = before.keys().filter(|what| !per_id.contains(what));
    let grown: Vec<_> = flat.filter(|what| !is_flat(what)).collect();
    assert!(grown.is_empty(), "{grown:?} grew: {before:?}, then {after:?}");
    let known = simulation.store.dictionary().len();
    let grown = |what: &str| after[what] - before[what];
    // The table doubles once when entries of removed keys fill it; the time depends on the hash
    // seed.
    let doubled = 512 * (size_of::<u32>() as u64 + 1);
    let growth_is_per_id =
        grown("dictionary") <= 32 * 6 * 25 + doubled && grown("states") <= 40 * 6 * 25;
    assert!(growth_is_per_id, "{before:?}, then {after:?}");
    // Each host present within the longest retention, plus one partition, has 25 series.
    assert!(known <= (8 + 8 + 2) * 25, "{known}");
    let (store, _) = simulation.restart(dir.path());
    assert_eq!(store.dictionary().len(), known);
}

/// Prints the parts of the plan next to the bytes used.
#[expect(clippy::print_stderr, reason = "the figures are shown with --nocapture")]
fn print_comparison(plan: &Plan, simulation: &Simulation, dir: &Path) {
    for level in &plan.granularities {
        let used = disk_usage(&dir.join("partitions").join(&level.name)).0;
        eprintln!("{}: planned {}, used {used}", level.name, level.bytes);
    }
    let (store, log) = (&simulation.store, disk_usage(&dir.join("journal")).0);
    eprintln!("head: planned {}, used {}", plan.head, store.head_bytes());
    eprintln!("journal: planned {}, used {}", plan.journal, store.journal_bytes() - log);
    eprintln!("log: planned {}, used {log}", plan.log);
}

/// Runs a year of hosts with 80 series each, of which rules keep 60. Returns the plan without its
/// spare log file, and the maximum disk use in bytes.
fn year_with_rules(hosts: usize) -> (Plan, u64) {
    let set = granularities(&[["12h", "2w", "8w", "24w"], ["1d", "4w", "16w", "32w"]]);
    let rules = vec![
        retention_rule(("node", "m[01]."), &[("12h", Some("8w"))], &set),
        retention_rule(("billing", "m[23]."), &[("1d", Some("10y"))], &set),
        retention_rule(("debug", "m[45]."), &[("12h", None), ("1d", Some("16w"))], &set),
    ];
    let run = Run {
        set,
        rules,
        hosts,
        metrics: 80,
        interval_ms: 12 * HOUR,
        samples_a_checkpoint: 4,
        renewal_ms: i64::MAX,
    };
    // The folder need not survive a power cut.
    let memory = Path::new("/dev/shm");
    let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    let dir = dir.unwrap();
    let mut simulation = Simulation::new(dir.path(), run, START);
    let mut most = 0;
    for day in 1..=365 {
        while simulation.now.0 < START.0 + day * DAY {
            simulation.step();
        }
        // Within the longest period of partitions, all levels reach their largest size.
        if day > 365 - 7 * 16 {
            most = most.max(disk_usage(dir.path()).0);
        }
    }
    let plan = simulation.run.plan(&[20; 3], 365 * DAY);
    print_comparison(&plan, &simulation, dir.path());
    let folders = std::fs::read_dir(dir.path().join("partitions")).unwrap();
    assert_eq!(folders.count(), plan.granularities.len());
    (plan, most)
}

/// Checks that the used bytes are at least this share of the planned ones, and at most a tenth more
/// than planned.
#[expect(clippy::print_stderr, reason = "the figures are shown with --nocapture")]
fn check_share(planned: u64, used: u64, share_min: f64) {
    let share = used as f64 / planned as f64;
    eprintln!("all: planned {planned}, used {used} at most: {share:.2}");
    assert!((share_min..=1.1).contains(&share), "planned {planned}, used {used}");
}

#[test]
fn a_year_with_rules_of_retention_takes_the_planned_disk_space_within_a_tenth() {
    let (plan, most) = year_with_rules(30);
    // Only the daemon reserves space.
    check_share(plan.disk() - plan.reserve, most, 0.9);
}

#[test]
fn open_documents_of_few_series_take_the_reserved_space() {
    let (plan, most) = year_with_rules(5);
    // The daemon also reserves a file of the log.
    check_share(plan.disk() - (4 << 20) - (256 << 10), most, 0.5);
}
