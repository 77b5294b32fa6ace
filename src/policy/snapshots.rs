//! Decisions on snapshots: whether there is room for a new snapshot, and which snapshots have
//! expired.

use crate::model::UnixMillis;

/// The maximum number of snapshots, and their retention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotPolicy {
    /// The maximum number of snapshots.
    pub count_max: usize,
    /// The retention of a snapshot, in milliseconds.
    pub retention_ms: i64,
}

/// An existing snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptSnapshot {
    /// The time of the snapshot.
    pub at: UnixMillis,
    /// The size of the snapshot in bytes.
    pub bytes: u64,
}

/// The disk space that a new snapshot needs, and the space that is available.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotRoom {
    /// The approximate size of a new snapshot, in bytes.
    pub needed: u64,
    /// Free bytes on the disk of the snapshot directory.
    pub free: u64,
    /// Bytes that must stay free, so that the journal can continue to accept batches.
    pub reserve: u64,
}

/// The reason why a snapshot is refused; a refusal changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotRefusal {
    /// The number of snapshots has reached its limit.
    #[error(
        "there are {count} snapshots, which is the limit: remove one from storage.snapshot_dir"
    )]
    TooMany {
        /// The current number of snapshots.
        count: usize,
    },
    /// The disk has too little free space.
    #[error(
        "a snapshot takes about {needed} bytes and {free} are free, of which {reserve} are reserved \
         for the journal: make room, or put storage.snapshot_dir on another disk"
    )]
    NoRoom {
        /// The approximate size of a new snapshot, in bytes.
        needed: u64,
        /// Free bytes on the disk.
        free: u64,
        /// Bytes that must stay free.
        reserve: u64,
    },
}

impl SnapshotPolicy {
    /// Returns the times of the snapshots that are past their retention.
    pub fn expired(&self, kept: &[KeptSnapshot], now: UnixMillis) -> Vec<UnixMillis> {
        let since = now.minus(self.retention_ms);
        kept.iter().map(|snapshot| snapshot.at).filter(|at| *at < since).collect()
    }

    /// Checks that there is room for a new snapshot.
    ///
    /// # Errors
    /// When there are too many snapshots, or the disk has too little free space.
    pub fn check(&self, kept: &[KeptSnapshot], room: &SnapshotRoom) -> Result<(), SnapshotRefusal> {
        let SnapshotRoom { needed, free, reserve } = *room;
        if kept.len() >= self.count_max {
            return Err(SnapshotRefusal::TooMany { count: kept.len() });
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

    const POLICY: SnapshotPolicy = SnapshotPolicy { count_max: 2, retention_ms: 1000 };
    const ROOM: SnapshotRoom = SnapshotRoom { needed: 40, free: 50, reserve: 10 };

    fn kept(at: i64, bytes: u64) -> KeptSnapshot {
        KeptSnapshot { at: UnixMillis(at), bytes }
    }

    #[test]
    fn snapshots_past_their_retention_expire() {
        let all = [kept(5000, 1), kept(5001, 1)];
        assert_eq!(POLICY.expired(&all, UnixMillis(6000)), []);
        assert_eq!(POLICY.expired(&all, UnixMillis(6001)), [UnixMillis(5000)]);
    }

    #[test]
    fn the_number_and_the_disk_space_are_limited() {
        assert_eq!(POLICY.check(&[kept(1, 60)], &ROOM), Ok(()));
        let two = [kept(1, 1), kept(2, 1)];
        assert_eq!(POLICY.check(&two, &ROOM), Err(SnapshotRefusal::TooMany { count: 2 }));
        let full = SnapshotRoom { free: 49, ..ROOM };
        assert!(matches!(POLICY.check(&[], &full), Err(SnapshotRefusal::NoRoom { .. })));
    }
}
