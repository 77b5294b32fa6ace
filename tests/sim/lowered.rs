//! A directory of this format is lowered to the previous format, with a power cut at each sync in
//! turn: afterwards the older release refuses it or reads every sample once, a second run finishes
//! the work, and this release reads every sample at any time.

use std::sync::Arc;

use granary::store::{DOWNGRADE_VERSION, FORMAT_VERSION, Medium, downgrade};

use crate::{
    faulty::{Call, Effect, Fault, FaultyMedium},
    format_upgrade::{cells, golden, open},
};

/// The distance of the older release's format.
const OLDER: i64 = DOWNGRADE_VERSION as i64 - FORMAT_VERSION as i64;

fn lower(medium: &FaultyMedium) -> bool {
    let medium: Arc<dyn Medium> = Arc::new(medium.clone());
    downgrade(&medium, &mut |_, _, _| {}).is_ok()
}

/// A medium on which the power was cut in a downgrade; `None` when it ended before.
fn cut(after: u64) -> Option<FaultyMedium> {
    let medium = golden(after);
    medium.arm(Fault { call: Call::Sync, after, times: 1, effect: Effect::PowerCut });
    assert!(lower(&medium) || medium.is_power_cut());
    medium.is_power_cut().then(|| {
        medium.power_up();
        medium
    })
}

#[test]
fn a_power_cut_while_lowering_a_directory_loses_nothing() {
    let whole = cells(&open(&golden(0)).unwrap());
    let (mut cuts, mut refused) = (0, 0);
    while let Some(medium) = cut(cuts) {
        medium.set_formats_ahead(OLDER);
        match open(&medium) {
            Ok(store) => assert!(cells(&store) == whole, "cut after {cuts} syncs, lowered"),
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
            assert!(cells(&open(&medium).unwrap()) == whole, "cut after {cuts} syncs, raised");
        }
        assert!(lower(&medium), "cut after {cuts} syncs");
        medium.set_formats_ahead(OLDER);
        let store = open(&medium).unwrap();
        assert!(cells(&store) == whole, "cut after {cuts} syncs, lowered again");
        assert_eq!(store.damaged_partitions(), [""; 0]);
        cuts += 1;
    }
    assert!(cuts > 20 && refused > 10 && refused <= cuts, "{cuts} cuts, {refused} refused");
}
