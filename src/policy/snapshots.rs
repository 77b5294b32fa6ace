//! Snapshots: whether a new one is allowed, and which old ones expire.

use crate::model::UnixMillis;

/// The maximum number of snapshots and their retention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotPolicy {
    /// The maximum number of snapshots.
    pub count_max: usize,
    /// The maximum size of all snapshots, in bytes.
    pub bytes_max: u64,
    /// The retention of a snapshot, in milliseconds.
    pub retention_ms: i64,
}

/// An existing snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptSnapshot {
    /// The time at which it was made.
    pub at: UnixMillis,
    /// The size of the snapshot, in bytes.
    pub bytes: u64,
}

/// The available disk space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotRoom {
    /// The approximate size of a new snapshot, in bytes.
    pub needed: u64,
    /// The free bytes of the file system for snapshots.
    pub free: u64,
    /// The bytes that must stay free, so that batches are still accepted.
    pub reserve: u64,
}

/// The reason for which no snapshot is made; nothing was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotRefusal {
    /// There are enough.
    #[error("there are {count} snapshots, as many as may be: remove one of storage.snapshot_dir")]
    TooMany {
        /// The number of snapshots.
        count: usize,
    },
    /// The snapshots would use too much space.
    #[error(
        "with a new one the snapshots would take {bytes} bytes, more than {max}: remove one of \
         storage.snapshot_dir, or raise snapshots.bytes_max"
    )]
    TooLarge {
        /// The space that all snapshots would use.
        bytes: u64,
        /// The space that snapshots may use.
        max: u64,
    },
    /// The disk is too full.
    #[error(
        "a snapshot takes about {needed} bytes and {free} are free, of which {reserve} are kept \
         for the journal: make room, or put storage.snapshot_dir on another disk"
    )]
    NoRoom {
        /// The space that the snapshot needs.
        needed: u64,
        /// The free space.
        free: u64,
        /// The space that must stay free.
        reserve: u64,
    },
}

impl SnapshotPolicy {
    /// The snapshots that are past their retention.
    pub fn expired(&self, kept: &[KeptSnapshot], now: UnixMillis) -> Vec<UnixMillis> {
        let since = now.minus(self.retention_ms);
        kept.iter().map(|snapshot| snapshot.at).filter(|at| *at < since).collect()
    }

    /// Returns whether one more snapshot is allowed beside the existing ones.
    ///
    /// # Errors
    /// When there are too many, or they would take too much.
    pub fn check(&self, kept: &[KeptSnapshot], room: &SnapshotRoom) -> Result<(), SnapshotRefusal> {
        let SnapshotRoom { needed, free, reserve } = *room;
        let bytes = kept.iter().fold(needed, |sum, snapshot| sum.saturating_add(snapshot.bytes));
        if kept.len() >= self.count_max {
            return Err(SnapshotRefusal::TooMany { count: kept.len() });
        }
        if bytes > self.bytes_max {
            return Err(SnapshotRefusal::TooLarge { bytes, max: self.bytes_max });
        }
        if free < needed.saturating_add(reserve) {
            return Err(SnapshotRefusal::NoRoom { needed, free, reserve });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: SnapshotPolicy =
        SnapshotPolicy { count_max: 2, bytes_max: 100, retention_ms: 1000 };
    const ROOM: SnapshotRoom = SnapshotRoom { needed: 40, free: 50, reserve: 10 };

    fn kept(at: i64, bytes: u64) -> KeptSnapshot {
        KeptSnapshot { at: UnixMillis(at), bytes }
    }

    #[test]
    fn old_snapshots_go_and_others_stay() {
        let all = [kept(5000, 1), kept(5001, 1)];
        assert_eq!(POLICY.expired(&all, UnixMillis(6000)), []);
        assert_eq!(POLICY.expired(&all, UnixMillis(6001)), [UnixMillis(5000)]);
    }

    #[test]
    fn number_bytes_and_the_disk_have_bounds() {
        assert_eq!(POLICY.check(&[kept(1, 60)], &ROOM), Ok(()));
        let two = [kept(1, 1), kept(2, 1)];
        assert_eq!(POLICY.check(&two, &ROOM), Err(SnapshotRefusal::TooMany { count: 2 }));
        let large = SnapshotRefusal::TooLarge { bytes: 101, max: 100 };
        assert_eq!(POLICY.check(&[kept(1, 61)], &ROOM), Err(large));
        let full = SnapshotRoom { free: 49, ..ROOM };
        assert!(matches!(POLICY.check(&[], &full), Err(SnapshotRefusal::NoRoom { .. })));
    }
}
