//! A directory of this format is downgraded to the previous format, with a power cut at each sync
//! in turn. Afterwards the older release refuses it or reads every sample once, a second run
//! finishes the work, and this release reads every sample at any time.

use std::sync::Arc;

use granary::store::{DOWNGRADE_VERSION, FORMAT_VERSION, Medium, downgrade};

use crate::{
    faulty::{Call, Effect, Fault, FaultyMedium},
    format_upgrade::{cells, golden_medium, open},
};

/// The older release's format minus the format of this release.
const OLDER_FORMAT_OFFSET: i64 = DOWNGRADE_VERSION as i64 - FORMAT_VERSION as i64;

fn run_downgrade(medium: &FaultyMedium) -> bool {
    let medium: Arc<dyn Medium> = Arc::new(medium.clone());
    downgrade(&medium, &mut |_, _, _| {}).is_ok()
}

/// Returns a medium whose power was cut after this many syncs of a downgrade, or `None` if the
/// downgrade ended earlier.
fn cut_power_in_downgrade(after: u64) -> Option<FaultyMedium> {
    let medium = golden_medium(after);
    medium.arm(Fault { call: Call::Sync, after, times: 1, effect: Effect::PowerCut });
    assert!(run_downgrade(&medium) || medium.is_power_cut());
    medium.is_power_cut().then(|| {
        medium.power_up();
        medium
    })
}

#[test]
fn a_power_cut_during_a_downgrade_loses_nothing() {
    let all_cells = cells(&open(&golden_medium(0)).unwrap());
    let (mut cuts, mut refused) = (0, 0);
    while let Some(medium) = cut_power_in_downgrade(cuts) {
        medium.set_formats_ahead(OLDER_FORMAT_OFFSET);
        match open(&medium) {
            Ok(store) => assert!(cells(&store) == all_cells, "cut after {cuts} syncs, lowered"),
            Err(fault) => {
                assert!(
                    fault.with_causes().contains("of a newer release"),
                    "{}",
                    fault.with_causes()
                );
                refused += 1;
            }
        }
        medium.set_formats_ahead(0);
        if cuts % 2 == 0 {
            assert!(cells(&open(&medium).unwrap()) == all_cells, "cut after {cuts} syncs, raised");
        }
        assert!(run_downgrade(&medium), "cut after {cuts} syncs");
        medium.set_formats_ahead(OLDER_FORMAT_OFFSET);
        let store = open(&medium).unwrap();
        assert!(cells(&store) == all_cells, "cut after {cuts} syncs, lowered again");
        assert_eq!(store.damaged_partitions(), [""; 0]);
        cuts += 1;
    }
    assert!(cuts > 20 && refused > 10 && refused <= cuts, "{cuts} cuts, {refused} refused");
}
