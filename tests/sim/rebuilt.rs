//! The power is cut at each sync of a rebuild in turn: a second run then has the result of a run
//! without a cut, and no sample counts twice.

use std::sync::Arc;

use granary::store::{Medium, RebuildWork, StoreError, rebuild};

use crate::{
    faulty::{Call, Effect, Fault, FaultyMedium},
    format_upgrade::{cells, golden, open},
    setup::NOW,
};

/// The golden directory without a partition of minutes, and with damage in coarser ones.
fn damaged(seed: u64) -> FaultyMedium {
    let medium = golden(seed);
    let of = |folder: &str, end: &str| {
        let mut names = medium.files();
        names.retain(|name| name.starts_with(folder) && name.ends_with(end));
        names.sort();
        names
    };
    medium.erase(&of("partitions/5m", ".redb")[2]);
    medium.damage_file(&of("partitions/5m", ".sealed")[0], |bytes| bytes[9] ^= 1);
    medium.damage_file(&of("partitions/1h", ".redb")[0], |bytes| bytes.truncate(1000));
    medium
}

fn run(medium: &FaultyMedium) -> Result<(), StoreError> {
    let medium: Arc<dyn Medium> = Arc::new(medium.clone());
    rebuild(&medium, &RebuildWork::all(), NOW, &mut |_| {}).map(drop)
}

#[test]
fn a_power_cut_during_a_rebuild_loses_and_doubles_nothing() {
    let sound = cells(&open(&golden(0)).unwrap());
    let medium = damaged(0);
    run(&medium).unwrap();
    let whole = cells(&open(&medium).unwrap());
    // The times that were past the retention of minutes are gone.
    let lost = sound.iter().filter(|cell| !whole.contains(cell)).count();
    assert!(whole.iter().all(|cell| sound.contains(cell)));
    assert!(lost > 0 && lost < sound.len() / 10, "{lost} of {} cells", sound.len());
    let mut cuts = 0;
    for after in (0..).step_by(3) {
        let medium = damaged(after);
        medium.arm(Fault { call: Call::Sync, after, times: 1, effect: Effect::PowerCut });
        let outcome = run(&medium);
        if !medium.is_power_cut() {
            outcome.unwrap();
            break;
        }
        cuts += 1;
        medium.power_up();
        run(&medium).unwrap();
        let store = open(&medium).unwrap();
        assert!(cells(&store) == whole, "cut after {after} syncs");
        store.checkpoint(NOW).unwrap();
        assert!(cells(&store) == whole, "cut after {after} syncs, later");
    }
    assert!(cuts > 10, "{cuts} cuts");
}
