//! Directories of every older format are opened and raised while the power is cut, at one sync or
//! another: what they held is there afterwards, once.

use std::{fs, path::Path, sync::Arc};

use granary::{
    model::{Cell, GranularitySet, SeriesId},
    store::Store,
};

use crate::{
    faulty::{Call, Effect, Fault, FaultyMedium},
    setup::{DAY, HOUR, NOW, slots},
};

/// The last format that is raised.
const LAST: u64 = 7;
/// Of so many syncs one is cut, another one with each format.
const ONE_IN: u64 = 7;

fn medium_of(format: u64, seed: u64) -> FaultyMedium {
    let medium = FaultyMedium::new(seed);
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/format-{format}"));
    put_all(&medium, &golden, "");
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

fn open(medium: &FaultyMedium) -> Option<Store> {
    let opened = Store::open(Arc::new(medium.clone()), GranularitySet::default(), NOW);
    opened.ok().map(|(store, _, _)| store)
}

/// All cells; their sums depend on the order in which they were merged.
fn cells(store: &Store) -> Vec<(usize, SeriesId, i64, Cell)> {
    let ids = store.dictionary().select(&[]);
    let mut all = Vec::new();
    for level in 0..store.granularities().count() {
        for id in &ids {
            let range = NOW.minus(100 * DAY)..NOW.plus(HOUR);
            let own = slots(store, level, range, *id).into_iter();
            all.extend(own.map(|slot| (level, *id, slot.start.0, Cell { sum: 0.0, ..slot.cell })));
        }
    }
    all
}

#[test]
fn a_power_cut_while_an_older_format_is_raised_loses_nothing() {
    for format in 1..=LAST {
        let whole = cells(&open(&medium_of(format, 0)).unwrap());
        assert!(whole.len() > 1000);
        let mut cuts = 0;
        for after in (format % ONE_IN..).step_by(ONE_IN as usize) {
            let medium = medium_of(format, after);
            medium.arm(Fault { call: Call::Sync, after, times: 1, effect: Effect::PowerCut });
            if let Some(store) = open(&medium) {
                assert!(store.checkpoint(NOW).is_ok() || medium.is_dead());
            }
            if !medium.is_dead() {
                break;
            }
            cuts += 1;
            medium.power_up();
            let store = open(&medium).unwrap();
            assert!(cells(&store) == whole, "format {format}, cut after {after} syncs");
            store.checkpoint(NOW).unwrap();
            assert!(cells(&store) == whole, "format {format}, cut after {after} syncs, later");
            assert_eq!(store.damaged_partitions(), [""; 0]);
        }
        assert!(cuts > 2, "format {format} was cut {cuts} times");
    }
}
