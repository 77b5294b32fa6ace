//! Rules of retention: series of a rule have levels and files of their own, new rules apply to
//! later samples, and each sample counts once whatever restarts change.

use std::{collections::BTreeSet, path::Path, sync::Arc};

use granary::{
    actors::drop_expired,
    model::{GranularitySet, Kind, RetentionRule, SeriesId, UnixMillis},
    query::{Budget, ChartRequest, Display, QueryLimits, Resolution, Selector, chart},
    store::{Appender, Folder, Store, verify},
};

use crate::setup::{
    DAY, HOUR, MINUTE, NOW, count, define, retention_rule, samples, send, series, slots,
};

const LIMITS: QueryLimits = QueryLimits { lines_max: 100, series_max: 10, points_max: 1_000_000 };

/// Returns a rule for metrics with a prefix; `None` omits a level.
fn rule(name: &str, levels: &[(&str, Option<&str>)]) -> RetentionRule {
    retention_rule((name, &format!("{name}_.*")), levels, &GranularitySet::default())
}

fn three_rules() -> Vec<RetentionRule> {
    vec![
        rule("node", &[("1m", Some("6h"))]),
        rule("billing", &[("1h", Some("10y")), ("1d", Some("10y"))]),
        rule("debug", &[("1m", None), ("5m", Some("2d"))]),
    ]
}

fn open(dir: &Path, rules: Option<&[RetentionRule]>, now: UnixMillis) -> (Store, Appender) {
    let medium = Arc::new(Folder::new(dir).unwrap());
    let set = GranularitySet::default();
    let (store, appender, _) = Store::open_with_rules(medium, set, rules, now).unwrap();
    (store, appender)
}

fn define_metrics(appender: &mut Appender, metrics: &[&str]) -> Vec<SeriesId> {
    let infos: Vec<_> = metrics.iter().map(|metric| series(metric, &[], Kind::Delta)).collect();
    define(appender, &infos, NOW)
}

/// Sends a sample a minute of each series, and runs a checkpoint each hour.
fn run(
    (store, appender): (&Store, &mut Appender),
    ids: &[SeriesId],
    (from, until): (UnixMillis, UnixMillis),
) {
    let mut at = from;
    while at < until {
        for id in ids {
            send(appender, samples(*id, [(at.0, 1.0)]), at);
        }
        at = at.plus(MINUTE);
        if at.0 % HOUR == 0 {
            store.checkpoint(at).unwrap();
        }
    }
}

fn files(dir: &Path) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    for level in std::fs::read_dir(dir.join("partitions")).unwrap() {
        let level = level.unwrap();
        if std::fs::read_dir(level.path()).unwrap().next().is_some() {
            out.insert(level.file_name().to_string_lossy().into_owned());
        }
    }
    out
}

/// Returns the total and the notes of a chart in slots of a width.
fn charted(store: &Store, metric: &str, width: &str, now: UnixMillis) -> (f64, String) {
    let selector = Selector { metric: Some(metric.into()), tags: Vec::new() };
    let resolution = Resolution::Named(width.into());
    let request = ChartRequest::new(selector, resolution, now.minus(DAY)..now);
    let request = ChartRequest { displays: vec![Display::Total], ..request };
    let answer = chart(store, &Budget::UNLIMITED, &request, &LIMITS, now).unwrap();
    let points = answer.series.iter().flat_map(|line| &line.points);
    (points.filter_map(|(_, number)| *number).sum(), answer.notes.join("; "))
}

#[test]
fn series_of_a_rule_have_levels_and_files_of_their_own_and_a_drop_stays_a_drop() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = open(dir.path(), Some(&three_rules()), NOW);
    let metrics = ["node_a", "billing_a", "debug_a", "other_a"];
    let ids = define_metrics(&mut appender, &metrics);
    let begin = UnixMillis(NOW.0 / DAY * DAY);
    let now = begin.plus(40 * HOUR);
    run((&store, &mut appender), &ids, (begin, now));
    assert!(drop_expired(&store, now).failed.is_none());
    let all = begin.minus(DAY)..now.plus(DAY);
    let counts = |id| [0, 1, 2, 3].map(|level| count(&store, level, all.clone(), id));
    // The first series keeps six hours and has a partition of six hours. The second keeps
    // everything.
    assert_eq!(counts(ids[0]), [10 * 60, 2400, 2400, 2400]);
    assert_eq!(counts(ids[1]), [2400; 4]);
    assert_eq!(counts(ids[2]), [0, 2400, 2400, 2400]);
    assert_eq!(counts(ids[3]), [2400; 4]);
    let expected = [
        "1h",
        "1h@billing",
        "1h@debug",
        "1h@node",
        "1m",
        "1m@billing",
        "1m@node",
        "5m",
        "5m@billing",
        "5m@debug",
        "5m@node",
    ];
    assert_eq!(files(dir.path()), expected.map(ToOwned::to_owned).into());
    let of_node = std::fs::read_dir(dir.path().join("partitions/1m@node")).unwrap();
    assert_eq!(
        of_node
            .filter(|file| {
                file.as_ref().unwrap().file_name().to_string_lossy().ends_with(".redb")
            })
            .count(),
        2
    );
    for (metric, note) in [
        ("node_a", "is not kept before"),
        ("debug_a", "by rule debug: 5m is shown there"),
        ("other_a", ""),
        ("billing_a", ""),
    ] {
        let (total, notes) = charted(&store, metric, "1m", now);
        assert_eq!(total, 1440.0, "{metric}");
        assert!(notes.contains(note) && notes.is_empty() == note.is_empty(), "{metric}: {notes}");
    }
    let series_of_rules: Vec<_> =
        store.class_spans(&ids).iter().map(|spans| spans[0].name.clone()).collect();
    assert_eq!(series_of_rules, ["node", "billing", "debug", ""]);
    drop((store, appender));
    let report = verify(dir.path(), now, &mut |_| {}).unwrap();
    assert!(report.is_sound() && report.compared > 0, "{report:?}");
    // A billing document outlives the retention of the settings.
    let years = now.plus(8 * 366 * DAY);
    let (store, _) = open(dir.path(), Some(&three_rules()), years);
    assert!(drop_expired(&store, years).failed.is_none());
    let expected = ["1h@billing"].map(ToOwned::to_owned);
    assert_eq!(files(dir.path()), expected.into());
    assert_eq!(count(&store, 2, all, ids[1]), 2400);
}

#[test]
fn changed_rules_apply_to_later_samples_and_every_sample_counts_once() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = open(dir.path(), Some(&[]), NOW);
    let ids = define_metrics(&mut appender, &["debug_a", "other_a"]);
    let begin = UnixMillis(NOW.0 / DAY * DAY);
    let change = begin.plus(90 * MINUTE);
    run((&store, &mut appender), &ids, (begin, change));
    drop((store, appender));
    let rules = [rule("debug", &[("1m", None)])];
    let (store, mut appender) = open(dir.path(), Some(&rules), change);
    run((&store, &mut appender), &ids, (change, begin.plus(3 * HOUR)));
    // A late sample belongs to the rules of its time.
    send(&mut appender, samples(ids[0], [(change.minus(30 * MINUTE).0 + 1, 1.0)]), change);
    let all = begin..begin.plus(DAY);
    let counts = |store: &Store, id| [0, 1, 2, 3].map(|level| count(store, level, all.clone(), id));
    let check = |store: &Store| {
        assert_eq!(counts(store, ids[0]), [91, 181, 181, 181]);
        assert_eq!(counts(store, ids[1]), [180; 4]);
        let hours = slots(store, 2, all.clone(), ids[0]);
        assert_eq!(hours.iter().map(|slot| slot.cell.n).collect::<Vec<_>>(), [60, 61, 60]);
        let (total, notes) = charted(store, "debug_a", "1m", begin.plus(3 * HOUR));
        assert_eq!(total, 181.0);
        assert!(notes.contains("by rule debug: 5m is shown there"), "{notes}");
    };
    check(&store);
    // The rule is removed while the journal has records; then another rule gets the name.
    drop((store, appender));
    for rules in [&[][..], &[rule("debug", &[("5m", None)])], &rules] {
        let (store, _) = open(dir.path(), Some(rules), begin.plus(3 * HOUR));
        check(&store);
        store.checkpoint(begin.plus(3 * HOUR)).unwrap();
        check(&store);
    }
    let report = verify(dir.path(), begin.plus(3 * HOUR), &mut |_| {}).unwrap();
    assert!(report.is_sound(), "{report:?}");
    // A new series with the name follows the rule from its first sample on; a renamed one keeps its
    // own rule.
    let (store, mut appender) = open(dir.path(), Some(&rules), begin.plus(3 * HOUR));
    let new = define_metrics(&mut appender, &["debug_b"])[0];
    send(&mut appender, samples(new, [(begin.plus(4 * HOUR).0, 1.0)]), begin.plus(4 * HOUR));
    assert_eq!(counts(&store, new), [0, 1, 1, 1]);
}

#[test]
fn changed_retentions_of_rules_apply_at_once_and_survive_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let (begin, set) = (UnixMillis(NOW.0 / DAY * DAY), GranularitySet::default());
    let rules = |minutes: &str| [rule("debug", &[("1m", Some(minutes))]), rule("other", &[])];
    let (store, mut appender) = open(dir.path(), Some(&rules("6h")), begin);
    let ids = define_metrics(&mut appender, &["debug_a", "plain"]);
    let now = begin.plus(30 * HOUR);
    run((&store, &mut appender), &ids, (begin, now));
    let kept = |store: &Store| {
        assert!(drop_expired(store, now).failed.is_none());
        [0, 1].map(|id| count(store, 0, begin..now, ids[id]))
    };
    assert_eq!(kept(&store), [6 * 60, 30 * 60]);
    // Dropped samples do not return, and late ones are stored again.
    assert_eq!(store.change_retentions(&set, &rules("12h"), now).unwrap(), 1);
    assert_eq!(store.change_retentions(&set, &rules("12h"), now).unwrap(), 0);
    send(&mut appender, samples(ids[0], [(now.minus(10 * HOUR).0, 1.0)]), now);
    assert_eq!(kept(&store), [6 * 60 + 1, 30 * 60]);
    let gaps = store.gaps()[4].complete_since;
    assert_eq!(gaps, now.minus(6 * HOUR).plus(1));
    // A shorter retention of a granularity also applies to rules that do not set their own.
    let shorter = set.iter().map(|level| match &*level.name {
        "1m" => level.with_retention("12h".parse().unwrap()),
        _ => level.clone(),
    });
    let shorter = GranularitySet::new(shorter.collect()).unwrap();
    let of_shorter = retention_rule(("other", "other_.*"), &[], &shorter);
    let changed = [rules("12h")[0].clone(), of_shorter];
    assert_eq!(store.change_retentions(&shorter, &changed, now).unwrap(), 2);
    assert_eq!(kept(&store), [6 * 60 + 1, 12 * 60]);
    drop((store, appender));
    let medium = Arc::new(Folder::new(dir.path()).unwrap());
    let (store, _, _) = Store::open_with_rules(medium, shorter, Some(&changed), now).unwrap();
    assert_eq!(kept(&store), [6 * 60 + 1, 12 * 60]);
    assert_eq!(store.gaps()[4].complete_since, gaps, "the restart changed no retention");
}

#[test]
fn the_name_of_an_ended_series_is_forgotten_after_the_retention_of_its_rule() {
    let omitted = [("1m", None), ("5m", Some("2d")), ("1h", None), ("1d", None)];
    let rules = [rule("debug", &omitted)];
    let check = |rules_before: &[RetentionRule], expected: [&[u32]; 3]| {
        let dir = tempfile::tempdir().unwrap();
        let (store, mut appender) = open(dir.path(), Some(rules_before), NOW);
        let ids = define_metrics(&mut appender, &["debug_x", "other"]);
        send(&mut appender, samples(ids[1], [(NOW.0, 1.0)]), NOW);
        drop((store, appender));
        let (store, mut appender) = open(dir.path(), Some(&rules), NOW);
        for id in &ids {
            send(&mut appender, samples(*id, [(NOW.0 + 1, 1.0)]), NOW.plus(1));
        }
        for (days, expected) in [1, 4, 8 * 366].into_iter().zip(expected) {
            let now = NOW.plus(days * DAY);
            store.checkpoint(now).unwrap();
            assert!(drop_expired(&store, now).failed.is_none());
            let found = store.series_without_samples(now, 9);
            let expected: Vec<_> = expected.iter().map(|id| SeriesId(*id)).collect();
            assert_eq!(found, expected, "{days} days");
            assert_eq!(appender.forget_series(&ids, now).unwrap(), found.len());
        }
    };
    check(&rules, [&[], &[0], &[1]]);
    // Late samples from before the rule are kept for years.
    check(&[], [&[], &[], &[0, 1]]);
}

#[test]
fn samples_older_than_everything_that_a_rule_keeps_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let omitted = [("1m", None), ("5m", Some("2d")), ("1h", None), ("1d", None)];
    let (store, mut appender) = open(dir.path(), Some(&[rule("debug", &omitted)]), NOW);
    let ids = define_metrics(&mut appender, &["debug_x", "other"]);
    let at = NOW.minus(5 * DAY).0;
    for id in ids {
        send(&mut appender, samples(id, [(at, 1.0), (NOW.0, 1.0)]), NOW);
    }
    assert_eq!(store.counters().samples_not_kept.get(), 1);
    drop((store, appender));
    // A replay does not count again.
    let (store, _) = open(dir.path(), None, NOW);
    assert_eq!(store.counters().samples_not_kept.get(), 0);
}
