//! The series of each class are counted, and the space keeper reserves the next documents of each
//! level for its own series.

use std::{collections::BTreeMap, fs, os::unix::fs::MetadataExt, path::Path, sync::Arc};

use granary::{
    actors::{Forecast, SpaceKeeper, SpaceKeeperParts},
    model::{GranularitySet, Kind, RetentionRule, SeriesInfo},
    policy::fleet_plan::{Fleet, Plan, PlanBounds},
    store::{Appender, ChangeAction, Folder, Matcher, SeriesChange, Store},
    telemetry::{Health, Metrics},
};

use crate::setup::{MINUTE, NOW, define, retention_rule, series};

fn open(dir: &Path, rule: &RetentionRule) -> (Store, Appender) {
    let medium = Arc::new(Folder::new(dir).unwrap());
    let rules = Some(std::slice::from_ref(rule));
    let set = GranularitySet::default();
    let (store, appender, _) = Store::open_with_rules(medium, set, rules, NOW).unwrap();
    (store, appender)
}

fn debug_rule() -> RetentionRule {
    retention_rule(("debug", "debug_.*"), &[("1m", None)], &GranularitySet::default())
}

/// Returns series of a metric, one for each of these hosts.
fn many(metric: &str, hosts: std::ops::Range<u32>) -> Vec<SeriesInfo> {
    let of_host = |host: u32| series(metric, &[("host", &host.to_string())], Kind::Gauge);
    hosts.map(of_host).collect()
}

#[test]
fn series_of_each_class_are_counted_as_they_are_defined_and_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = open(dir.path(), &debug_rule());
    let counts =
        |store: &Store| (store.series_by_class(NOW..NOW.plus(1)), store.series_by_rule(NOW));
    assert_eq!(counts(&store), (vec![0, 0], vec![]));
    define(&mut appender, &many("debug_a", 0..5), NOW);
    let of_rule = |count| vec![("debug".to_owned(), count)];
    assert_eq!(counts(&store), (vec![0, 5], of_rule(5)));
    define(&mut appender, &many("other", 0..3), NOW);
    define(&mut appender, &many("debug_b", 0..2), NOW);
    assert_eq!(counts(&store), (vec![3, 7], of_rule(7)));
    let matchers = vec![Matcher { tag: "host".into(), value: "1".into() }];
    let delete = SeriesChange { matchers, action: ChangeAction::Delete };
    assert_eq!(appender.change(&delete, NOW).unwrap(), Ok(3));
    assert_eq!(counts(&store), (vec![2, 5], of_rule(5)));
    drop((store, appender));
    let (store, _) = open(dir.path(), &debug_rule());
    assert_eq!(counts(&store), (vec![2, 5], of_rule(5)));
}

/// Returns the reserved bytes in the folder of each level.
fn reserved(dir: &Path) -> BTreeMap<String, u64> {
    let mut out = BTreeMap::new();
    for level in fs::read_dir(dir.join("partitions")).unwrap() {
        let level = level.unwrap();
        for file in fs::read_dir(level.path()).unwrap() {
            let file = file.unwrap();
            if file.path().extension().is_some_and(|end| end == "sealed") {
                let name = level.file_name().to_string_lossy().into_owned();
                *out.entry(name).or_default() += file.metadata().unwrap().blocks() * 512;
            }
        }
    }
    out
}

#[test]
fn each_level_has_space_for_the_next_documents_of_its_own_series() {
    let (dir, rule) = (tempfile::tempdir().unwrap(), debug_rule());
    let (store, mut appender) = open(dir.path(), &rule);
    define(&mut appender, &many("debug_a", 0..3000), NOW);
    define(&mut appender, &many("other", 0..1000), NOW);
    let forecast = Forecast::default();
    let mut keeper = SpaceKeeper::new(SpaceKeeperParts {
        store: store.clone(),
        data_dir: dir.path().into(),
        metrics: Metrics::new().unwrap(),
        health: Health::default(),
        forecast: forecast.clone(),
    });
    keeper.run(NOW);
    let reserved = reserved(dir.path());
    let fleet = Fleet { hosts: 1, metrics: 4000, interval_ms: MINUTE };
    let bounds = PlanBounds {
        checkpoint_interval_ms: 10 * MINUTE,
        cell_bytes_max: 32 << 20,
        cache_bytes_max: 64 << 20,
    };
    let plan = Plan::new(&fleet, (&GranularitySet::default(), &[(rule, 3000)]), &bounds, None);
    assert_eq!(plan.granularities.len(), 7);
    assert_eq!(reserved.len(), 7, "{reserved:?}");
    for level in &plan.granularities {
        let (planned, bytes) = (level.turn_bytes * 11 / 10, reserved[&level.name]);
        assert!(bytes >= planned && bytes - planned < 8192, "{}: {bytes} {planned}", level.name);
    }
    let all: u64 = reserved.values().sum();
    // The plan also counts a file of the log.
    let of_log = plan.reserve - all;
    assert!((4 << 20..5 << 20).contains(&of_log), "{} {all}", plan.reserve);
    let turns = forecast.turns();
    let names: Vec<_> = turns.iter().map(|turn| &*turn.granularity).collect();
    assert_eq!(names, ["1m", "5m", "1h", "1d"]);
    // Files have whole pages.
    assert!(reserved["1m"] - turns[0].reserved < 4096, "{turns:?} {reserved:?}");
    assert!(all - turns[3].reserved < 7 * 4096, "{turns:?} {reserved:?}");
    assert!(turns.iter().all(|turn| turn.missing == 0), "{turns:?}");
}
