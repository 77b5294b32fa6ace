//! Deleted and renamed series: the results of every kind of query afterwards, before and after
//! restarts.

use std::path::Path;

use granary::{
    model::{DefinitionVerdict, GranularityIndex, Kind, SeriesId, SeriesKey, SeriesLimits},
    store::{
        Appender, ChangeAction, ChangeRefusal, Matcher, Renaming, SeriesChange, Store, StoreLimits,
        restore, verify,
    },
};
use redb::{Database, TableDefinition};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::setup::{self, MINUTE, NOW, samples, send, series, slots};

fn key(metric: &str, host: &str) -> SeriesKey {
    setup::key(metric, &[("host", host)])
}

fn define(appender: &mut Appender, metric: &str, host: &str) -> DefinitionVerdict {
    let series = series(metric, &[("host", host)], Kind::Counter);
    appender.commit(&[series], &[], NOW).unwrap().definitions[0]
}

fn define_and_get_id(appender: &mut Appender, metric: &str, host: &str) -> SeriesId {
    let verdict = define(appender, metric, host);
    let DefinitionVerdict::Known(id) = verdict else { panic!("{verdict:?}") };
    id
}

/// Sends readings that are a minute apart; the last reading is at `NOW`.
fn send_readings(appender: &mut Appender, series: SeriesId, readings: &[f64]) {
    let first = NOW.minus((readings.len() as i64 - 1) * MINUTE).0;
    let times = (0..).map(|index| first + index * MINUTE);
    send(appender, samples(series, times.zip(readings.iter().copied())), NOW);
}

fn matchers(tag: &str, value: &str) -> Vec<Matcher> {
    vec![Matcher { tag: tag.into(), value: value.into() }]
}

fn delete(host: &str) -> SeriesChange {
    SeriesChange { matchers: matchers("host", host), action: ChangeAction::Delete }
}

fn rename(host: &str, to: &str) -> SeriesChange {
    let tags = vec![("host".to_owned(), to.to_owned())];
    let renaming = Renaming { metric: None, tags, limits: SeriesLimits::default() };
    SeriesChange { matchers: matchers("host", host), action: ChangeAction::Rename(renaming) }
}

/// Returns the number of samples and the growth of a series, which must be the same at every
/// granularity.
fn count_and_growth(store: &Store, metric: &str, host: &str) -> Option<(u32, f64)> {
    let id = store.dictionary().find(&key(metric, host))?;
    let range = NOW.minus(60 * MINUTE)..NOW.plus(MINUTE);
    let totals: Vec<_> = (0..store.granularities().count())
        .map(|level| {
            let slots = slots(store, level, range.clone(), id);
            slots.iter().fold((0, 0.0), |(n, sum), slot| (n + slot.cell.n, sum + slot.cell.sum))
        })
        .collect();
    assert!(totals.iter().all(|other| *other == totals[0]), "{totals:?}");
    Some(totals[0])
}

fn assert_no_faults(folder: &Path) {
    let report = verify(folder, NOW, &mut |_| {}).unwrap();
    assert_eq!(report.faults, []);
}

#[test]
fn a_deleted_series_disappears_and_its_key_begins_a_new_one() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let (store, mut appender) = setup::open(&data, NOW);
    let old = define_and_get_id(&mut appender, "requests", "web1");
    let other = define_and_get_id(&mut appender, "requests", "web2");
    send_readings(&mut appender, old, &[100.0, 110.0]);
    send_readings(&mut appender, other, &[5.0, 6.0]);
    store.checkpoint(NOW).unwrap();
    send_readings(&mut appender, old, &[120.0]);
    assert_eq!(appender.change(&delete("nowhere"), NOW).unwrap(), Ok(0));
    assert_eq!(appender.change(&delete("web1"), NOW).unwrap(), Ok(1));
    assert_eq!(appender.change(&delete("web1"), NOW).unwrap(), Ok(0));
    assert_eq!(store.dictionary().len(), 1);
    assert_eq!(count_and_growth(&store, "requests", "web1"), None);
    assert_eq!(store.live_series(NOW.minus(MINUTE)), [other]);
    assert_eq!(
        store.preallocate(GranularityIndex(0), NOW.plus(60 * MINUTE), &[old, other]).unwrap(),
        1
    );
    // A batch in flight is accepted for the deleted series.
    send_readings(&mut appender, old, &[130.0]);

    drop((store, appender));
    let (store, mut appender) = setup::open(&data, NOW);
    assert_eq!(count_and_growth(&store, "requests", "web1"), None);
    assert_eq!(count_and_growth(&store, "requests", "web2"), Some((2, 1.0)));
    // Only existing series count against the limit, and IDs are not reused.
    appender.set_limits(StoreLimits { series_max: 2, ..StoreLimits::default() });
    let new = define_and_get_id(&mut appender, "requests", "web1");
    assert_eq!(new, SeriesId(2));
    assert_eq!(define(&mut appender, "requests", "web3"), DefinitionVerdict::StoreLimit);
    // The new series does not continue from the last reading of the deleted series.
    send_readings(&mut appender, new, &[140.0, 145.0]);
    assert_eq!(count_and_growth(&store, "requests", "web1"), Some((2, 5.0)));
    store.checkpoint(NOW).unwrap();

    let copy = dir.path().join("copy");
    store.snapshot(&copy, NOW, &mut |_| {}).unwrap();
    drop((store, appender));
    assert_no_faults(&data);
    let restored = dir.path().join("restored");
    restore(&copy, &restored, &mut |_| {}).unwrap();
    assert_no_faults(&restored);
    for folder in [&data, &restored] {
        let (store, _) = setup::open(folder, NOW);
        assert_eq!(count_and_growth(&store, "requests", "web1"), Some((2, 5.0)));
        assert_eq!(store.dictionary().info(old), None);
        assert_eq!(store.dictionary().len(), 2);
    }
}

#[test]
fn a_renamed_series_keeps_its_history_and_its_old_key_begins_a_new_one() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = setup::open(dir.path(), NOW);
    let [requests, errors] =
        ["requests", "errors"].map(|metric| define_and_get_id(&mut appender, metric, "web1"));
    send_readings(&mut appender, requests, &[100.0, 110.0]);
    store.checkpoint(NOW).unwrap();
    send_readings(&mut appender, errors, &[1.0, 2.0]);
    assert_eq!(appender.change(&rename("web1", "db1"), NOW).unwrap(), Ok(2));
    let assert_renamed = |store: &Store| {
        assert_eq!(count_and_growth(store, "requests", "web1"), None);
        assert_eq!(count_and_growth(store, "requests", "db1"), Some((2, 10.0)));
        assert_eq!(count_and_growth(store, "errors", "db1"), Some((2, 1.0)));
        assert_eq!(store.dictionary().select(&matchers("host", "db1")), [requests, errors]);
        assert_eq!(store.dictionary().select(&matchers("host", "web1")), []);
    };
    assert_renamed(&store);
    drop((store, appender));
    let (store, mut appender) = setup::open(dir.path(), NOW);
    assert_renamed(&store);
    assert_eq!(define_and_get_id(&mut appender, "requests", "db1"), requests);
    let new_errors = define_and_get_id(&mut appender, "errors", "web1");
    assert_eq!(new_errors, SeriesId(2));
    send_readings(&mut appender, new_errors, &[50.0]);
    define_and_get_id(&mut appender, "latency", "web1");

    // One of the two names is taken: neither series is renamed.
    let refused = appender.change(&rename("web1", "db1"), NOW).unwrap();
    let (from, to) = (key("errors", "web1"), key("errors", "db1"));
    assert_eq!(refused, Err(ChangeRefusal::Conflict { from, to, count: 1 }));
    assert!(store.dictionary().find(&key("latency", "web1")).is_some());
    // The change would give two series the same key.
    let renaming =
        Renaming { metric: Some("all".into()), tags: vec![], limits: SeriesLimits::default() };
    let action = ChangeAction::Rename(renaming);
    let merge = SeriesChange { matchers: matchers("host", "web1"), action };
    let refused = appender.change(&merge, NOW).unwrap();
    assert!(matches!(refused, Err(ChangeRefusal::Conflict { count: 1, .. })), "{refused:?}");
    // A series is renamed, renamed back, and deleted.
    assert_eq!(appender.change(&rename("web1", "web2"), NOW).unwrap(), Ok(2));
    assert_eq!(appender.change(&rename("web2", "web1"), NOW).unwrap(), Ok(2));
    assert_eq!(appender.change(&delete("db1"), NOW).unwrap(), Ok(2));
    assert_eq!(appender.change(&rename("web1", "db1"), NOW).unwrap(), Ok(2));
    drop((store, appender));
    assert_no_faults(dir.path());
    let (store, _) = setup::open(dir.path(), NOW);
    assert_eq!(count_and_growth(&store, "errors", "db1"), Some((1, 0.0)));
    assert_eq!(store.dictionary().len(), 2);
}

#[test]
fn changes_without_a_condition_or_with_bad_names_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (_, mut appender) = setup::open(dir.path(), NOW);
    define_and_get_id(&mut appender, "requests", "web1");
    let change_error = |appender: &mut Appender, change: &SeriesChange| {
        appender.change(change, NOW).unwrap().unwrap_err().to_string()
    };
    let all = SeriesChange { matchers: vec![], action: ChangeAction::Delete };
    assert!(change_error(&mut appender, &all).contains("give a metric or at least one tag"));
    let long = rename("web1", &"x".repeat(2000));
    assert!(change_error(&mut appender, &long).contains("shorten it"));
    let mut nothing = rename("web1", "x");
    if let ChangeAction::Rename(renaming) = &mut nothing.action {
        renaming.tags.clear();
    }
    assert!(change_error(&mut appender, &nothing).contains("nothing is to be set"));
}

#[test]
fn a_change_of_an_unknown_series_is_an_error_that_names_it() {
    const CHANGES: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("series_changes");
    let existing_key = key("requests", "web2");
    for (row, value, problem) in [
        (7_u32, &[][..], "a change names series 7, but there are only 2"),
        (0, b"no key".as_slice(), "table series_changes cannot be read"),
        (
            0,
            existing_key.as_bytes(),
            r#"series 1 has the key requests{host="web2"} of another series"#,
        ),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let (store, mut appender) = setup::open(dir.path(), NOW);
        define_and_get_id(&mut appender, "requests", "web1");
        define_and_get_id(&mut appender, "requests", "web2");
        drop((store, appender));
        assert_no_faults(dir.path());
        let db = Database::open(dir.path().join("journal.redb")).unwrap();
        let txn = db.begin_write().unwrap();
        let value = [value, &xxh3_64_with_seed(value, row.into()).to_le_bytes()].concat();
        txn.open_table(CHANGES).unwrap().insert(row, &*value).unwrap();
        txn.commit().unwrap();
        drop(db);
        let report = verify(dir.path(), NOW, &mut |_| {}).unwrap();
        let problems: Vec<_> = report.faults.iter().map(|fault| &fault.problem).collect();
        assert!(problems.len() == 1 && problems[0].contains(problem), "{problems:?}");
    }
}
