//! Several projects in one store: the same names are allowed, and nothing of one project is visible
//! in another.

use std::{collections::BTreeMap, ops::ControlFlow, path::Path, sync::Arc};

use granary::{
    model::{
        AcceptedBatch, BatchNumber, BatchVerdict, Deduplication, DefinitionVerdict, GranularitySet,
        HostChanges, HostRecord, KeySelector, Kind, ProjectName, RetentionRule, SeriesInfo,
    },
    store::{
        Appender, ChangeAction, ErasureRequest, Folder, Matcher, Medium, ObjectKind, SeriesChange,
        Store, downgrade, restore, verify,
    },
};

use crate::setup::{self, HOUR, NOW, open};

fn projects() -> [ProjectName; 3] {
    ["default", "red", "red-2"].map(|name| ProjectName::new(name).unwrap())
}

fn definition(project: &ProjectName, host: &str) -> SeriesInfo {
    let info = setup::series("load", &[("host", host)], Kind::Gauge);
    SeriesInfo { sender: project.stored_name("agent"), ..info }
}

/// Sends one value of the series `load` of a host as the batch `seq` of the project's agent.
fn send(appender: &mut Appender, project: &ProjectName, seq: u64, value: f64) -> BatchVerdict {
    let series = setup::define(appender, &[definition(project, "web1")], NOW);
    let number = BatchNumber { sender: project.stored_name("agent"), epoch: 1, seq };
    let batch = AcceptedBatch {
        deduplication: Deduplication::ByNumber(number),
        series,
        times: vec![NOW.0 - HOUR + seq as i64],
        values: vec![value],
        ..AcceptedBatch::default()
    };
    appender.commit(&[], &[batch], NOW).unwrap().batches[0]
}

fn matchers() -> Vec<Matcher> {
    vec![Matcher { tag: "host".into(), value: "web1".into() }]
}

/// Returns the sums of all series by name, as a project reads them.
fn sums(store: &Store) -> BTreeMap<String, f64> {
    let ids = store.dictionary().select(&[]);
    let sum = |id| {
        let slots = setup::slots(store, 0, NOW.minus(5 * HOUR)..NOW, id);
        (store.dictionary().key(id).unwrap().to_string(), slots.iter().map(|s| s.cell.sum).sum())
    };
    ids.into_iter().map(sum).collect()
}

fn web1(sum: f64) -> BTreeMap<String, f64> {
    [("load{host=\"web1\"}".to_owned(), sum)].into()
}

#[test]
fn equal_names_of_several_projects_are_different_series_senders_hosts_and_objects() {
    let dir = tempfile::tempdir().unwrap();
    let (mut store, mut appender) = open(dir.path(), NOW);
    for (index, project) in projects().iter().enumerate() {
        let value = 10_f64.powi(index as i32);
        assert!(send(&mut appender, project, 1, value).is_accepted());
        assert_eq!(send(&mut appender, project, 1, value), BatchVerdict::Duplicate);
        let of = store.for_project(project);
        let put = of.put_object(ObjectKind::Dashboard, "d", None, project.as_str().as_bytes(), NOW);
        put.unwrap().unwrap();
        let host = HostRecord { first_seen: index as i64, ..HostRecord::default() };
        let changed = vec![("web1".into(), host)];
        of.keep_hosts(&HostChanges { changed, ..HostChanges::default() }).unwrap();
    }
    for restarts in 0..3 {
        for (index, project) in projects().iter().enumerate() {
            let of = store.for_project(project);
            let known = web1(10_f64.powi(index as i32));
            assert_eq!(sums(&of).into_values().collect::<Vec<_>>(), [known["load{host=\"web1\"}"]]);
            assert_eq!(of.dictionary().largest_senders(9), [("agent".into(), 1)]);
            let senders = of.senders();
            assert_eq!((senders.len(), &*senders[0].name, senders[0].series), (1, "agent", 1));
            assert_eq!(of.sender_latest("agent"), Some((1, 1)));
            let object = of.object(ObjectKind::Dashboard, "d").unwrap().unwrap();
            assert_eq!(object.bytes, project.as_str().as_bytes());
            let listed = of.objects(ObjectKind::Dashboard).unwrap();
            assert_eq!(listed.iter().map(|object| &*object.name).collect::<Vec<_>>(), ["d"]);
            let mut visited = Vec::new();
            let visit = &mut |name: &str, _| {
                visited.push(name.to_owned());
                ControlFlow::Continue(())
            };
            of.visit_objects_backwards(ObjectKind::Dashboard, "".."\u{10ffff}", visit).unwrap();
            assert_eq!(visited, ["d"]);
            let hosts = of.hosts().unwrap().records;
            assert_eq!(
                (hosts.len(), &*hosts[0].0, hosts[0].1.first_seen),
                (1, "web1", index as i64)
            );
        }
        assert_eq!(store.all_series().len(), 3);
        if restarts == 1 {
            store.checkpoint(NOW).unwrap();
        }
        drop((store, appender));
        assert_eq!(verify(dir.path(), NOW, &mut |_| {}).unwrap().faults, []);
        (store, appender) = open(dir.path(), NOW);
    }
    // A snapshot has all projects.
    let (copy, restored) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (copy, restored) = (copy.path().join("copy"), restored.path().join("back"));
    store.snapshot(&copy, NOW, &mut |_| {}).unwrap();
    restore(&copy, &restored, &mut |_| {}).unwrap();
    let (store, _appender) = open(&restored, NOW);
    assert_eq!(sums(&store.for_project(&projects()[2])).into_values().sum::<f64>(), 100.0);
}

#[test]
fn changes_and_views_of_one_project_leave_the_others_alone() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = open(dir.path(), NOW);
    let [default, red, other] = projects();
    for (index, project) in projects().iter().enumerate() {
        send(&mut appender, project, 1, index as f64 + 1.0);
    }
    let total =
        |project: &ProjectName| sums(&store.for_project(project)).into_values().sum::<f64>();
    let ids: Vec<_> =
        projects().iter().map(|of| store.for_project(of).dictionary().select(&[])[0]).collect();
    // Reading series of other projects returns nothing.
    assert!(setup::slots(&store.for_project(&red), 0, NOW.minus(5 * HOUR)..NOW, ids[0]).is_empty());
    let erasure = ErasureRequest { matchers: matchers(), range: NOW.minus(5 * HOUR)..NOW };
    appender.erase_in(&red, &erasure, false, NOW).unwrap().unwrap();
    store.complete_erasure().unwrap();
    assert_eq!([total(&default), total(&red), total(&other)], [1.0, 0.0, 3.0]);
    let delete = SeriesChange { matchers: matchers(), action: ChangeAction::Delete };
    assert_eq!(appender.change_in(&other, &delete, NOW).unwrap(), Ok(1));
    assert_eq!([total(&default), total(&other)], [1.0, 0.0]);
    assert_eq!(store.for_project(&red).planned(&delete).unwrap().len(), 1);
    assert_eq!(appender.forget(&[red.stored_name("agent")], NOW).unwrap(), 1);
    assert!(store.for_project(&red).senders().is_empty() && !store.senders().is_empty());
}

#[test]
fn a_project_has_a_limit_of_series_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let (_store, mut appender) = open(dir.path(), NOW);
    let [default, red, other] = projects();
    appender.set_project_limits([(red.clone(), 2)].into());
    let mut define =
        |project: &ProjectName, hosts: &[&str]| {
            let all: Vec<_> = hosts.iter().map(|host| definition(project, host)).collect();
            let verdicts = appender.commit(&all, &[], NOW).unwrap().definitions;
            let is_known =
                |verdict: &DefinitionVerdict| matches!(verdict, DefinitionVerdict::Known(_));
            assert!(verdicts.iter().all(|verdict| is_known(verdict)
            || *verdict == DefinitionVerdict::ProjectLimit));
            verdicts.iter().filter(|verdict| is_known(verdict)).count()
        };
    assert_eq!(define(&other, &["a", "b", "c"]), 3);
    assert_eq!(define(&red, &["a", "b", "c"]), 2);
    assert_eq!(define(&red, &["b", "c"]), 1, "a known series stays");
    assert_eq!(define(&default, &["a", "b", "c"]), 3);
}

/// Returns a rule that keeps all series of a project without minutes.
fn rule_of(project: &ProjectName) -> RetentionRule {
    let selector = KeySelector::new(Vec::new()).unwrap().in_project(project);
    let levels = [("1m".to_owned(), None)];
    RetentionRule::new("of_red", selector, &levels, &GranularitySet::default()).unwrap()
}

#[test]
fn a_rule_of_retention_can_select_a_project_whose_files_are_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let [default, red, _] = projects();
    let open = |rules: Option<&[RetentionRule]>| {
        let medium = Arc::new(Folder::new(dir.path()).unwrap());
        let set = GranularitySet::default();
        let (store, appender, _) = Store::open_with_rules(medium, set, rules, NOW).unwrap();
        (store, appender)
    };
    let rules = [rule_of(&red)];
    let (mut store, mut appender) = open(Some(&rules));
    for project in [&default, &red] {
        for seq in 1..=3 {
            assert!(send(&mut appender, project, seq, 1.0).is_accepted());
        }
    }
    let later = NOW.plus(12 * HOUR);
    for restarts in 0..3 {
        store.checkpoint(later).unwrap();
        let count = |project: &ProjectName, level: usize| {
            let store = store.for_project(project);
            let id = store.dictionary().select(&matchers())[0];
            setup::slots(&store, level, NOW.minus(5 * HOUR)..NOW, id).len()
        };
        let levels: Vec<_> =
            store.all_granularities().iter().map(|level| level.name.clone()).collect();
        let own = levels.iter().position(|level| level == "5m@of_red").unwrap();
        assert_eq!((count(&default, 0), count(&red, 0)), (1, 0), "{restarts}: {levels:?}");
        assert_eq!((count(&default, own), count(&red, own)), (0, 1));
        // Both series have the same key, and only the files of the rule count for the project.
        let bytes = [&default, &red].map(|project| store.for_project(project).bytes_of_project());
        let of_rule = store
            .partitions()
            .into_iter()
            .filter(|partition| levels[partition.id.granularity.0].ends_with("@of_red"));
        assert_eq!(bytes, [0, of_rule.map(|partition| partition.bytes).sum()]);
        assert!(bytes[1] > 0);
        drop((store, appender));
        (store, appender) = open((restarts > 0).then_some(&rules[..]));
    }
}

fn downgrade_directory(dir: &Path) -> Result<u64, String> {
    let medium: Arc<dyn Medium> = Arc::new(Folder::new(dir).unwrap());
    let report = downgrade(&medium, &mut |_, _, _| {}).map_err(|cause| cause.to_string())?;
    Ok(report.lowered)
}

#[test]
fn a_directory_is_downgraded_only_without_series_and_objects_of_projects() {
    let dir = tempfile::tempdir().unwrap();
    let [_, red, _] = projects();
    let (store, mut appender) = open(dir.path(), NOW);
    for project in projects().iter().take(2) {
        send(&mut appender, project, 1, 1.0);
    }
    let of = store.for_project(&red);
    let version = of.put_object(ObjectKind::Silence, "s", None, b"{}", NOW).unwrap().unwrap();
    let changed = vec![("web1".into(), HostRecord::default())];
    of.keep_hosts(&HostChanges { changed, ..HostChanges::default() }).unwrap();
    drop((store, appender, of));
    let refused = downgrade_directory(dir.path()).unwrap_err();
    assert!(refused.contains("the project red has series or objects"), "{refused}");
    let (store, mut appender) = open(dir.path(), NOW);
    let delete = SeriesChange { matchers: matchers(), action: ChangeAction::Delete };
    assert_eq!(appender.change_in(&red, &delete, NOW).unwrap(), Ok(1));
    drop((store, appender));
    let refused = downgrade_directory(dir.path()).unwrap_err();
    assert!(refused.contains("objects.redb"), "{refused}");
    let (store, appender) = open(dir.path(), NOW);
    let of = store.for_project(&red);
    of.delete_object(ObjectKind::Silence, "s", Some(version)).unwrap().unwrap();
    // A clean stop also makes a checkpoint; after a kill, the journal still has the project's
    // senders.
    store.checkpoint(NOW).unwrap();
    drop((store, appender, of));
    assert!(downgrade_directory(dir.path()).unwrap() > 0);
    let (store, _appender) = open(dir.path(), NOW);
    let of = store.for_project(&red);
    assert!(of.senders().is_empty() && of.hosts().unwrap().records.is_empty());
    assert_eq!((store.senders().len(), store.dictionary().len()), (1, 1));
}
