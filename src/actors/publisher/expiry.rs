//! The collections that have expired: their partitions are past the retention of all levels, and no
//! longer in the store. A collection that a late write created again expires in the same way.
//!
//! Must never know: the connection.

use std::collections::BTreeSet;

use crate::{
    model::{Moment, UnixMillis},
    policy::retention::is_expired,
    store::{Store, start_of_partition},
};

/// Returns the names of expired collections among `names`. Names that are not those of collections
/// of documents never expire.
pub(super) fn expired(store: &Store, names: &[String], now: Moment) -> Vec<String> {
    let partitions = store.partitions();
    let width = |level| store.granularity(level).width_ms;
    let stored: BTreeSet<(i64, UnixMillis)> = partitions
        .iter()
        .map(|partition| (width(partition.id.granularity), partition.id.start))
        .collect();
    let is_expired_name = |name: &&String| {
        let Some((granularity, partition)) = name.split_once('.') else { return false };
        let Some((_, granularity)) = store.granularities().named(granularity) else { return false };
        let Some(start) = start_of_partition(partition) else { return false };
        let end = granularity.partition_end(granularity.partition_start(start));
        let mut levels =
            store.levels().iter().filter(|level| level.width_ms == granularity.width_ms);
        !stored.contains(&(granularity.width_ms, start))
            && levels.all(|level| is_expired(level, end, now))
    };
    names.iter().filter(is_expired_name).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup;

    #[test]
    fn only_partitions_past_their_retention_expire() {
        let dir = tempfile::tempdir().unwrap();
        let (store, _appender) = setup::open(dir.path(), setup::NOW);
        let day = |days: i64| setup::NOW.minus(days * 86_400_000).civil().strftime("%Y-%m-%d");
        let name = |granularity: &str, days: i64| format!("{granularity}.{}", day(days));
        let (old, recent) = (name("5m", 30), name("5m", 3));
        let names = [
            old.clone(),
            recent,
            name("1d", 30),
            "granary".to_owned(),
            "5m.mine".to_owned(),
            "7m.2020-01-01".to_owned(),
            "orders.2020-01-01".to_owned(),
        ];
        assert_eq!(expired(&store, &names, setup::NOW.into()), [old]);
        let doubted = Moment { clock: setup::NOW, believed: setup::NOW.minus(1) };
        assert_eq!(expired(&store, &names, doubted), [""; 0]);
    }
}
