//! Granularities that are removed from the settings and added again.

use granary::model::{GranularitySet, Kind, SeriesId, UnixMillis};

use crate::setup::{DAY, NOW, define, granularities, open_with, samples, send, series, slots};

fn both() -> GranularitySet {
    granularities(&[["1h", "1d", "1d", "7d"], ["1d", "1mo", "1y", "5y"]])
}

fn hours() -> GranularitySet {
    GranularitySet::new(both().as_slice()[..1].to_vec()).unwrap()
}

fn day(at: UnixMillis) -> UnixMillis {
    both().as_slice()[1].slot_start(at)
}

fn days(store: &granary::store::Store) -> Vec<(i64, u32)> {
    let found = slots(store, 1, NOW.minus(30 * DAY)..NOW.plus(DAY), SeriesId(0));
    found.iter().map(|slot| ((day(NOW).0 - slot.start.0) / DAY, slot.cell.n)).collect()
}

/// Regression: samples that only 1d contained were lost without a note, because they had no
/// document yet. When 1d was added again, all of its earlier data was hidden.
#[test]
fn samples_that_only_a_removed_granularity_had_are_kept_and_return_with_it() {
    for is_stopped_in_order in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        {
            let (store, mut appender) = open_with(dir.path(), &both(), NOW);
            define(&mut appender, &[series("events", &[("host", "a")], Kind::Delta)], NOW);
            for days in [10, 9, 0] {
                send(&mut appender, samples(SeriesId(0), [(NOW.0 - days * DAY, 1.0)]), NOW);
            }
            if is_stopped_in_order {
                store.checkpoint(NOW).unwrap();
            }
        }
        let expected = [(10, 1), (9, 1), (0, 1)];
        {
            let (store, mut appender) = open_with(dir.path(), &hours(), NOW);
            assert_eq!(store.all_granularities().len(), 2);
            assert_eq!(days(&store), expected);
            // A late sample, and a current sample.
            for days in [3, 0] {
                let at = NOW.0 - days * DAY + 5;
                send(&mut appender, samples(SeriesId(0), [(at, 1.0)]), NOW.plus(5));
            }
            store.checkpoint(NOW.plus(5)).unwrap();
            let late = day(NOW.minus(3 * DAY));
            let today = day(NOW)..day(NOW).plus(DAY);
            assert_eq!(store.gaps()[1].holes, [late..late.plus(DAY), today]);
        }
        let back = NOW.plus(5);
        let (store, _) = open_with(dir.path(), &both(), back);
        assert_eq!(days(&store), expected);
        let gaps = &store.gaps()[1];
        assert_eq!(gaps.complete_since, UnixMillis(i64::MIN));
        let late = day(NOW.minus(3 * DAY));
        assert_eq!(gaps.holes, [late..late.plus(DAY), day(NOW)..day(NOW).plus(DAY)]);
    }
}
