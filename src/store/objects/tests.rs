//! Objects, compared with a map in memory, on a medium that fails.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot continue has failed")]

use std::{collections::BTreeMap, sync::Arc};

use proptest::prelude::*;

use super::*;
use crate::{
    setup::NOW,
    store::{
        faulty::{Call, EIO, ENOSPC, Effect, Fault, FaultyMedium},
        journal::Journal,
    },
};

const KIND: ObjectKind = ObjectKind::Dashboard;

fn project() -> ProjectName {
    ProjectName::default()
}

fn open(medium: &FaultyMedium) -> Result<Objects, StoreError> {
    let medium: Arc<dyn Medium> = Arc::new(medium.clone());
    let journal = Arc::new(Journal::open(&medium)?);
    Objects::open(medium.clone(), Arc::new(Register::open(medium, journal)?))
}

fn faults(objects: &Objects) -> Vec<String> {
    let mut faults = Vec::new();
    objects.check(&mut |fault| faults.push(fault)).unwrap();
    faults
}

fn put(
    objects: &Objects,
    name: &str,
    expected: Option<u64>,
    text: &str,
) -> Result<u64, ObjectRefusal> {
    objects.put((&project(), KIND, name), expected, text.as_bytes(), NOW).unwrap()
}

fn conflict(name: &str, found: Option<u64>) -> ObjectRefusal {
    ObjectRefusal::Conflict { kind: KIND, name: name.to_owned(), found }
}

#[test]
fn the_stored_name_of_another_project_reaches_no_object() {
    let objects = open(&FaultyMedium::new(1)).unwrap();
    let shop: ProjectName = "shop".parse().unwrap();
    assert_eq!(objects.put((&shop, KIND, "a"), None, b"x", NOW).unwrap(), Ok(1));
    let stored = shop.stored_name("a");
    assert_eq!(objects.get(&project(), KIND, &stored).unwrap(), None);
    let deleted = objects.delete(&project(), KIND, &stored, Some(1)).unwrap();
    assert_eq!(deleted, Err(conflict(&stored, None)));
    assert!(objects.get(&shop, KIND, "a").unwrap().is_some());
}

#[test]
fn a_change_of_an_old_version_is_refused() {
    let objects = open(&FaultyMedium::new(1)).unwrap();
    assert_eq!(objects.delete(&project(), KIND, "a", Some(1)).unwrap(), Err(conflict("a", None)));
    assert_eq!(put(&objects, "a", Some(1), "x"), Err(conflict("a", None)));
    assert_eq!(put(&objects, "a", None, "x"), Ok(1));
    assert_eq!(put(&objects, "a", None, "y"), Err(conflict("a", Some(1))));
    assert_eq!(put(&objects, "a", Some(1), "y"), Ok(2));
    assert_eq!(put(&objects, "a", Some(1), "z"), Err(conflict("a", Some(2))));
    assert_eq!(
        objects.delete(&project(), KIND, "a", Some(1)).unwrap(),
        Err(conflict("a", Some(2)))
    );
    assert_eq!(objects.delete(&project(), KIND, "a", Some(2)).unwrap(), Ok(()));
    assert_eq!(objects.delete(&project(), KIND, "a", None).unwrap(), Err(conflict("a", None)));
    // A version is never used again.
    assert_eq!(put(&objects, "a", None, "w"), Ok(3));
    let found = objects.get(&project(), KIND, "a").unwrap().unwrap();
    assert_eq!(found, Object { version: 3, changed_at: NOW, bytes: b"w".to_vec() });
    // Objects of different kinds may have equal names.
    assert_eq!(objects.get(&project(), ObjectKind::AlertState, "a").unwrap(), None);
    assert_eq!(
        objects.put((&project(), ObjectKind::AlertState, "a"), None, b"", NOW).unwrap(),
        Ok(4)
    );
    let listed = [ListedObject { name: "a".to_owned(), version: Some(3) }];
    assert_eq!(objects.list(&project(), KIND).unwrap(), listed);
    assert_eq!(faults(&objects), [""; 0]);
}

#[test]
fn a_range_of_names_is_visited_from_its_end_until_the_visitor_breaks() {
    let objects = open(&FaultyMedium::new(1)).unwrap();
    for name in ["a", "b", "c", "d"] {
        put(&objects, name, None, name).unwrap();
    }
    objects.put((&project(), ObjectKind::Annotation, "b"), None, b"other", NOW).unwrap().unwrap();
    let read = |names: Range<&str>, enough: usize| {
        let mut found = Vec::new();
        let mut visit = |name: &str, object: Option<Object>| {
            found.push((name.to_owned(), String::from_utf8(object.unwrap().bytes).unwrap()));
            if found.len() < enough { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        objects.visit_backwards(&project(), KIND, names, &mut visit).unwrap();
        assert!(found.iter().all(|(name, bytes)| name == bytes));
        found.into_iter().map(|(name, _)| name).collect::<String>()
    };
    assert_eq!(read("a".."d", 9), "cba");
    assert_eq!(read("b".."z", 2), "dc");
    assert_eq!(read("e".."z", 9), "");
    assert_eq!(read("z".."a", 9), "");
}

#[test]
fn names_sizes_and_numbers_are_bounded() {
    let objects = open(&FaultyMedium::new(1)).unwrap();
    for name in ["", "a\nb", &"x".repeat(OBJECT_NAME_BYTES_MAX + 1)] {
        assert_eq!(put(&objects, name, None, "x"), Err(ObjectRefusal::BadName(KIND)), "{name}");
    }
    let most = vec![7; OBJECT_BYTES_MAX];
    let too_large =
        objects.put((&project(), KIND, "a"), None, &[&most[..], &[7]].concat(), NOW).unwrap();
    let bytes = OBJECT_BYTES_MAX + 1;
    assert_eq!(too_large, Err(ObjectRefusal::TooLarge { kind: KIND, bytes }));
    let fits = OBJECTS_BYTES_MAX / (OBJECT_BYTES_MAX as u64 + 24);
    for index in 0..fits {
        objects.put((&project(), KIND, &format!("{index}/x")), None, &most, NOW).unwrap().unwrap();
    }
    assert_eq!(
        objects.put((&project(), KIND, "more"), None, &most, NOW).unwrap(),
        Err(ObjectRefusal::QuotaReached)
    );
    // An object that shrinks always fits.
    assert_eq!(put(&objects, "0/x", Some(1), "x"), Ok(fits + 1));
    assert_eq!(objects.put((&project(), KIND, "more"), None, &most, NOW).unwrap(), Ok(fits + 2));
    assert_eq!(objects.list(&project(), KIND).unwrap().len() as u64, fits + 1);
}

/// Regression: 516 large silences took the space of alerts and notifications.
#[test]
fn a_kind_at_its_quota_takes_no_space_from_another_kind() {
    let medium = FaultyMedium::new(1);
    let most = vec![7; OBJECT_BYTES_MAX];
    let mut objects = open(&medium).unwrap();
    let put = |objects: &Objects, kind, name: &str| {
        objects.put((&project(), kind, name), None, &most, NOW).unwrap()
    };
    let fill = |objects: &Objects, kind, prefix: &str| {
        let all = (0..100).map(|n| put(objects, kind, &format!("{prefix}{n}")));
        all.take_while(Result::is_ok).count() as u64
    };
    let fits = OBJECTS_BYTES_MAX / (OBJECT_BYTES_MAX as u64 + 24);
    assert_eq!(fill(&objects, ObjectKind::Silence, ""), fits);
    // The use is counted again after a start.
    for kind in [ObjectKind::Dashboard, ObjectKind::Annotation] {
        drop(objects);
        objects = open(&medium).unwrap();
        assert_eq!(put(&objects, ObjectKind::Silence, "more"), Err(ObjectRefusal::QuotaReached));
        assert_eq!(fill(&objects, kind, ""), fits);
    }
    assert_eq!(fill(&objects, ObjectKind::Notification, ""), fits);
    assert_eq!(fill(&objects, ObjectKind::AlertState, ""), fits);
    let (count, bytes) = objects.size().unwrap();
    assert!(count == fits && bytes <= OBJECTS_BYTES_MAX && bytes > OBJECTS_BYTES_MAX / 2);
    let version = objects.get(&project(), ObjectKind::Silence, "0").unwrap().unwrap().version;
    objects.delete(&project(), ObjectKind::Silence, "0", Some(version)).unwrap().unwrap();
    assert!(put(&objects, ObjectKind::Silence, "more").is_ok());
    assert_eq!(faults(&objects), [""; 0]);
}

#[test]
fn a_damaged_object_affects_no_other_and_can_be_created_again() {
    let medium = FaultyMedium::new(1);
    let objects = open(&medium).unwrap();
    put(&objects, "a", None, "the first of them").unwrap();
    put(&objects, "b", None, "the second of them").unwrap();
    let objects = damaged(&medium, objects, |bytes| {
        let text = b"the first of them";
        let positions = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(text));
        positions.collect::<Vec<_>>().into_iter().for_each(|at| bytes[at] ^= 1);
    });
    let fault = objects.get(&project(), KIND, "a").unwrap_err();
    assert_eq!(
        fault.to_string(),
        "objects.redb: dashboard \"a\" is damaged: create it again, or restore it from a snapshot"
    );
    let versions = objects.list(&project(), KIND).unwrap().into_iter().map(|listed| listed.version);
    assert_eq!(versions.collect::<Vec<_>>(), [None, Some(2)]);
    assert_eq!(faults(&objects), ["object \"dashboard/a\": its checksum does not fit"]);
    assert_eq!(put(&objects, "a", Some(1), "x"), Err(conflict("a", None)));
    assert_eq!(put(&objects, "a", None, "x"), Ok(3));
    assert_eq!(objects.get(&project(), KIND, "a").unwrap().unwrap().bytes, b"x");
    assert_eq!(faults(&objects), [""; 0]);
}

#[test]
fn a_damaged_file_is_set_aside_and_a_lost_one_is_marked() {
    let medium = FaultyMedium::new(1);
    let objects = open(&medium).unwrap();
    put(&objects, "a", None, "x").unwrap();
    let objects = damaged(&medium, objects, |bytes| bytes.fill(7));
    assert_eq!(objects.get(&project(), KIND, "a").unwrap(), None);
    assert_eq!(objects.register.damaged(), ["objects.redb"]);
    put(&objects, "a", None, "y").unwrap();
    drop(objects);
    assert_eq!(open(&medium).unwrap().get(&project(), KIND, "a").unwrap().unwrap().bytes, b"y");
    medium.remove(OBJECTS_FILE).unwrap();
    let objects = open(&medium).unwrap();
    assert_eq!(objects.register.damaged(), ["objects.redb", "objects.redb.missing"]);
    assert_eq!(objects.list(&project(), KIND).unwrap(), []);
}

/// Changes the bytes of the file, and opens it again.
fn damaged(medium: &FaultyMedium, objects: Objects, change: impl FnOnce(&mut Vec<u8>)) -> Objects {
    drop(objects);
    let dir = tempfile::tempdir().unwrap();
    let copy = dir.path().join("copy");
    medium.copy(OBJECTS_FILE, &copy).unwrap();
    let mut bytes = std::fs::read(copy).unwrap();
    change(&mut bytes);
    medium.put(OBJECTS_FILE, bytes);
    open(medium).unwrap()
}

/// The expected objects by the number in their names.
type Map = BTreeMap<usize, Object>;

#[derive(Debug, Clone)]
enum Step {
    Put { name: usize, length: usize, is_current: bool },
    Delete { name: usize, is_current: bool },
    Reopen,
    Arm(Fault),
}

fn step() -> impl Strategy<Value = Step> {
    let calls = [Call::Read, Call::Write, Call::SetLen, Call::Sync, Call::Open, Call::Rename];
    let effects = [Effect::Error(EIO), Effect::Error(ENOSPC), Effect::PowerCut];
    let (calls, effects) = (calls.to_vec(), effects.to_vec());
    let fault = (prop::sample::select(calls), 0..10_u64, 1..4_u64, prop::sample::select(effects));
    prop_oneof![
        4 => (0..4_usize, 0..3000_usize, prop::bool::weighted(0.8))
            .prop_map(|(name, length, is_current)| Step::Put { name, length, is_current }),
        2 => (0..4_usize, prop::bool::weighted(0.8))
            .prop_map(|(name, is_current)| Step::Delete { name, is_current }),
        1 => Just(Step::Reopen),
        3 => fault.prop_map(|(call, after, times, effect)| {
            Step::Arm(Fault { call, after, times, effect })
        }),
    ]
}

/// Makes a change; returns the map after a change that succeeded or was refused, `None` after an
/// error.
fn run(objects: &Objects, map: &Map, step: &Step) -> Option<Map> {
    let mut after = map.clone();
    let versions = |name: usize, is_current: bool| {
        let found = map.get(&name).map(|object| object.version);
        (format!("n{name}"), found, if is_current { found } else { Some(1_000_000) })
    };
    match step {
        Step::Put { name, length, is_current } => {
            let (text, found, expected) = versions(*name, *is_current);
            let bytes = vec![*length as u8; *length];
            let outcome = objects.put((&project(), KIND, &text), expected, &bytes, NOW).ok()?;
            assert_eq!(outcome.is_ok(), *is_current, "{outcome:?} {found:?}");
            if let Ok(version) = outcome {
                assert!(map.values().all(|object| object.version < version));
                after.insert(*name, Object { version, changed_at: NOW, bytes });
            }
        }
        Step::Delete { name, is_current } => {
            let (text, found, expected) = versions(*name, *is_current);
            let outcome = objects.delete(&project(), KIND, &text, expected).ok()?;
            assert_eq!(outcome.is_ok(), *is_current && found.is_some(), "{outcome:?}");
            if outcome.is_ok() {
                after.remove(name);
            }
        }
        Step::Reopen | Step::Arm(_) => {}
    }
    Some(after)
}

/// Returns the existing objects.
fn found(objects: &Objects) -> Map {
    let name = |listed: &ListedObject| {
        listed.name.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap()
    };
    let get = |listed: ListedObject| {
        let object = objects.get(&project(), KIND, &listed.name).unwrap().unwrap();
        assert_eq!(listed.version, Some(object.version));
        (name(&listed), object)
    };
    objects.list(&project(), KIND).unwrap().into_iter().map(get).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]
    #[test]
    fn whatever_fails_each_change_is_stored_completely_or_not_at_all(
        seed: u64, steps in prop::collection::vec(step(), 1..30)
    ) {
        let medium = FaultyMedium::new(seed);
        let mut objects = open(&medium).unwrap();
        let mut map = Map::new();
        for step in &steps {
            if let Step::Arm(fault) = step {
                medium.arm(*fault);
                continue;
            }
            let after = run(&objects, &map, step);
            let is_dead = medium.is_power_cut();
            medium.lift();
            if is_dead {
                medium.power_up();
            }
            if is_dead || matches!(step, Step::Reopen) {
                medium.kill();
                objects = open(&medium).unwrap();
            }
            let existing = found(&objects);
            if let Some(after) = after {
                prop_assert_eq!(&existing, &after);
            } else {
                // After an error, only the object of the step may have changed.
                let (Step::Put { name, .. } | Step::Delete { name, .. }) = step else {
                    unreachable!()
                };
                let others = |map: &Map| {
                    let mut map = map.clone();
                    map.remove(name);
                    map
                };
                prop_assert_eq!(others(&existing), others(&map));
                let is_new = match (step, existing.get(name)) {
                    (Step::Put { length, .. }, Some(found)) => found.bytes.len() == *length,
                    (_, found) => found.is_none(),
                };
                prop_assert!(is_new || existing.get(name) == map.get(name));
            }
            map = existing;
            prop_assert_eq!(faults(&objects), [""; 0]);
            prop_assert_eq!(objects.register.damaged(), [""; 0]);
        }
    }
}
