//! The prediction of `granary plan` is within a tenth of the disk usage of a run on a simulated
//! clock.

use std::os::unix::fs::MetadataExt;

use granary::{
    model::{AcceptedBatch, GranularitySet, SeriesId, SeriesInfo, UnixMillis},
    policy::fleet_plan::{Fleet, Plan, PlanBounds},
    store::{Appender, Store},
};

use crate::{
    fleet::{Values, disk_usage, host_series},
    setup::{HOUR, MINUTE, define, granularities, key, open_with, send},
};

const HOSTS: usize = 20;
const METRICS: usize = 100;
/// 2026-09-12T00:00:00Z
const START: UnixMillis = UnixMillis(1_789_171_200_000);

/// The length of a run, and the interval of checkpoints.
#[derive(Clone, Copy)]
struct Run {
    duration_ms: i64,
    checkpoint_ms: i64,
}

/// Returns the series of a host, with names as long as the names of a real agent.
fn agent_series(host: usize) -> Vec<SeriesInfo> {
    let name = format!("web-{host:05}.example.com");
    let tags = [("datacenter", "west-1"), ("host", &*name), ("role", "frontend")];
    let key = |metric: usize| key(&format!("host_network_{metric:02}_bytes"), &tags);
    let series_of =
        |(metric, info)| SeriesInfo { key: key(metric), sender: name.as_str().into(), ..info };
    host_series(host, METRICS).into_iter().enumerate().map(series_of).collect()
}

/// Sends a sample of each series per minute, and runs checkpoints and the sealer.
fn run(store: &Store, appender: &mut Appender, Run { duration_ms, checkpoint_ms }: Run) {
    let all: Vec<_> = (0..HOSTS).flat_map(agent_series).collect();
    let ids: Vec<SeriesId> =
        all.chunks(500).flat_map(|definitions| define(appender, definitions, START)).collect();
    let mut values = Values::new(HOSTS, METRICS, 1);
    let mut pending = AcceptedBatch::default();
    for minute in 0..duration_ms / MINUTE {
        let at = START.plus(minute * MINUTE);
        pending.series.extend_from_slice(&ids);
        pending.values.extend_from_slice(values.step());
        pending.times.resize(pending.series.len(), at.0);
        let now = at.plus(MINUTE);
        if now.0 % checkpoint_ms == 0 {
            send(appender, std::mem::take(&mut pending), now);
            store.checkpoint(now).unwrap();
            store.seal(now, checkpoint_ms, &|_| true).unwrap();
        }
    }
    // The next checkpoints write and seal the partitions whose period is over.
    for later in 1..4 {
        let now = START.plus(duration_ms + later * checkpoint_ms);
        store.checkpoint(now).unwrap();
        store.seal(now, checkpoint_ms, &|_| true).unwrap();
    }
}

fn plan(set: &GranularitySet, run: Run) -> Plan {
    let fleet = Fleet { hosts: HOSTS as u64, metrics: METRICS as u64, interval_ms: MINUTE };
    let bounds = PlanBounds {
        checkpoint_interval_ms: run.checkpoint_ms,
        cell_bytes_max: 32 << 20,
        cache_bytes_max: 64 << 20,
    };
    // The duration includes the three checkpoints at the end of the run.
    Plan::new(&fleet, (set, &[]), &bounds, Some(run.duration_ms + 3 * run.checkpoint_ms))
}

#[test]
fn the_disk_usage_of_a_run_is_within_a_tenth_of_the_plan() {
    let set = granularities(&[["1m", "1h", "6h", "12h"], ["5m", "4h", "12h", "24h"]]);
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = open_with(dir.path(), &set, START);
    let settings = Run { duration_ms: 12 * HOUR, checkpoint_ms: 10 * MINUTE };
    run(&store, &mut appender, settings);
    let planned = plan(&set, settings);
    let mut deviations = Vec::new();
    let mut compare = |what: &str, planned: u64, used: u64| {
        let ratio = planned as f64 / used as f64;
        if !(0.9..=1.1).contains(&ratio) {
            deviations.push(format!("{what}: planned {planned}, used {used}"));
        }
    };
    for granularity in &planned.granularities {
        compare(
            &granularity.name,
            granularity.bytes,
            disk_usage(&dir.path().join("partitions").join(&granularity.name)).0,
        );
    }
    let file_bytes = |name: &str| std::fs::metadata(dir.path().join(name)).unwrap().blocks() * 512;
    compare("the head", planned.head, file_bytes("head.redb"));
    compare("the journal", planned.journal, file_bytes("journal.redb"));
    let log = disk_usage(&dir.path().join("journal")).0;
    assert!(log <= planned.log, "the log: planned {}, used {log}", planned.log);
    // The plan's reserve is left out: only a daemon reserves space, and none runs here.
    let planned_without_log = planned.disk() - planned.log - planned.reserve;
    compare("everything except the log", planned_without_log, disk_usage(dir.path()).0 - log);
    assert!(deviations.is_empty(), "{deviations:#?}");
}

#[test]
fn the_journal_has_the_planned_size_with_a_long_checkpoint_interval() {
    let set = granularities(&[["1m", "1h", "6h", "12h"], ["5m", "4h", "12h", "24h"]]);
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = open_with(dir.path(), &set, START);
    let settings = Run { duration_ms: 2 * HOUR, checkpoint_ms: 30 * MINUTE };
    run(&store, &mut appender, settings);
    let planned = plan(&set, settings);
    let tables = std::fs::metadata(dir.path().join("journal.redb")).unwrap().blocks() * 512;
    let ratio = planned.journal as f64 / tables as f64;
    assert!((0.9..=1.1).contains(&ratio), "planned {ratio} of {tables}");
    let log = disk_usage(&dir.path().join("journal")).0;
    assert!(log <= planned.log, "the log: planned {}, used {log}", planned.log);
}
