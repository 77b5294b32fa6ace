//! A power cut at each sync of a rebuild in turn: a second run has the result of a run without a
//! cut, and no sample counts twice.

use std::sync::Arc;

use granary::store::{Medium, RebuildWork, StoreError, rebuild};

use crate::{
    faulty::{Call, Effect, Fault, FaultyMedium},
    format_upgrade::{cells, golden_medium, open},
    setup::NOW,
};

/// Returns the golden directory without a partition of 5m, and with damage in 5m and 1h.
fn damaged_medium(seed: u64) -> FaultyMedium {
    let medium = golden_medium(seed);
    let files_in = |folder: &str, end: &str| {
        let mut names = medium.files();
        names.retain(|name| name.starts_with(folder) && name.ends_with(end));
        names.sort();
        names
    };
    medium.erase(&files_in("partitions/5m", ".redb")[2]);
    medium.damage_file(&files_in("partitions/5m", ".sealed")[0], |bytes| bytes[9] ^= 1);
    medium.damage_file(&files_in("partitions/1h", ".redb")[0], |bytes| bytes.truncate(1000));
    medium
}

fn run_rebuild(medium: &FaultyMedium) -> Result<(), StoreError> {
    let medium: Arc<dyn Medium> = Arc::new(medium.clone());
    rebuild(&medium, &RebuildWork::all(), NOW, &mut |_| {}).map(drop)
}

#[test]
fn a_power_cut_during_a_rebuild_loses_and_doubles_nothing() {
    let undamaged = cells(&open(&golden_medium(0)).unwrap());
    let medium = damaged_medium(0);
    run_rebuild(&medium).unwrap();
    let rebuilt = cells(&open(&medium).unwrap());
    // Cells are lost where the finer granularity no longer has samples.
    let lost = undamaged.iter().filter(|cell| !rebuilt.contains(cell)).count();
    assert!(rebuilt.iter().all(|cell| undamaged.contains(cell)));
    assert!(lost > 0 && lost < undamaged.len() / 10, "{lost} of {} cells", undamaged.len());
    let mut cuts = 0;
    for after in (0..).step_by(3) {
        let medium = damaged_medium(after);
        medium.arm(Fault { call: Call::Sync, after, times: 1, effect: Effect::PowerCut });
        let outcome = run_rebuild(&medium);
        if !medium.is_power_cut() {
            outcome.unwrap();
            break;
        }
        cuts += 1;
        medium.power_up();
        run_rebuild(&medium).unwrap();
        let store = open(&medium).unwrap();
        assert!(cells(&store) == rebuilt, "cut after {after} syncs");
        store.checkpoint(NOW).unwrap();
        assert!(cells(&store) == rebuilt, "cut after {after} syncs, later");
    }
    assert!(cuts > 10, "{cuts} cuts");
}
