//! A directory of this format is upgraded to a later format, with a power cut at each sync in turn:
//! afterwards its samples are present exactly once. This release opens the result, or refuses it
//! and changes nothing.

use std::{fs, path::Path, sync::Arc};

use granary::{
    model::{Cell, GranularitySet, SeriesId},
    store::{FORMAT_VERSION, Store, StoreError},
};

use crate::{
    faulty::{Call, Effect, Fault, FaultyMedium},
    setup::{DAY, HOUR, NOW, slots},
};

/// Returns a medium with the golden directory of this format.
pub(crate) fn golden_medium(seed: u64) -> FaultyMedium {
    let medium = FaultyMedium::new(seed);
    let name = format!("tests/data/format-{FORMAT_VERSION}");
    put_all(&medium, &Path::new(env!("CARGO_MANIFEST_DIR")).join(name), "");
    medium
}

fn put_all(medium: &FaultyMedium, folder: &Path, prefix: &str) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{prefix}{}", path.file_name().unwrap().to_str().unwrap());
        if path.is_dir() {
            put_all(medium, &path, &format!("{name}/"));
        } else if let Some(name) = name.strip_suffix(".zst") {
            medium.put(name, zstd::decode_all(&*fs::read(&path).unwrap()).unwrap());
        }
    }
}

pub(crate) fn open(medium: &FaultyMedium) -> Result<Store, StoreError> {
    let opened = Store::open(Arc::new(medium.clone()), GranularitySet::default(), NOW);
    opened.map(|(store, _, _)| store)
}

/// Returns all cells without their sums, which depend on the order of merging, and without their
/// second moments, which a directory from before them lacks until its cells are computed again.
pub(crate) fn cells(store: &Store) -> Vec<(usize, SeriesId, i64, Cell)> {
    let ids = store.dictionary().select(&[]);
    let mut all = Vec::new();
    for level in 0..store.granularities().count() {
        for id in &ids {
            let range = NOW.minus(100 * DAY)..NOW.plus(HOUR);
            let found = slots(store, level, range, *id).into_iter();
            all.extend(
                found.map(|slot| {
                    (level, *id, slot.start.0, Cell { sum: 0.0, m2: 0.0, ..slot.cell })
                }),
            );
        }
    }
    all
}

#[test]
fn a_power_cut_during_an_upgrade_loses_nothing() {
    let all_cells = cells(&open(&golden_medium(0)).unwrap());
    assert!(all_cells.len() > 1000);
    let (mut cuts, mut refused) = (0, 0);
    for after in 0.. {
        let medium = golden_medium(after);
        medium.set_formats_ahead(1);
        medium.arm(Fault { call: Call::Sync, after, times: 1, effect: Effect::PowerCut });
        if let Ok(store) = open(&medium) {
            assert!(store.checkpoint(NOW).is_ok() || medium.is_power_cut());
        }
        if !medium.is_power_cut() {
            break;
        }
        cuts += 1;
        medium.power_up();
        medium.set_formats_ahead(0);
        match open(&medium) {
            Ok(store) => assert!(cells(&store) == all_cells, "cut after {after} syncs, not raised"),
            Err(fault) => {
                assert!(
                    fault.with_causes().contains("of a newer release"),
                    "{}",
                    fault.with_causes()
                );
                refused += 1;
            }
        }
        medium.set_formats_ahead(1);
        let store = open(&medium).unwrap();
        assert!(cells(&store) == all_cells, "cut after {after} syncs");
        store.checkpoint(NOW).unwrap();
        assert!(cells(&store) == all_cells, "cut after {after} syncs, later");
        assert_eq!(store.damaged_partitions(), [""; 0]);
    }
    assert!(cuts > 10 && refused > 5 && refused < cuts, "{cuts} cuts, {refused} refused");
}
