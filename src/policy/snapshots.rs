//! Whether a snapshot may be made, and which ones go.

use crate::model::UnixMillis;

/// How many snapshots there may be, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotPolicy {
    /// Snapshots at a time.
    pub count_max: usize,
    /// Bytes of all snapshots.
    pub bytes_max: u64,
    /// How long a snapshot is kept, in ms.
    pub retention_ms: i64,
}

/// A snapshot that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptSnapshot {
    /// When it was made.
    pub at: UnixMillis,
    /// Bytes that it takes.
    pub bytes: u64,
}

/// What there is room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotRoom {
    /// Bytes that a new snapshot takes, about.
    pub needed: u64,
    /// Bytes that are free where snapshots are put.
    pub free: u64,
    /// Bytes that must stay free, so that batches go on being accepted.
    pub reserve: u64,
}

/// Why no snapshot is made; nothing was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotRefusal {
    /// There are enough.
    #[error("there are {count} snapshots, as many as may be: remove one of storage.snapshot_dir")]
    TooMany {
        /// How many there are.
        count: usize,
    },
    /// They would take too much.
    #[error(
        "with a new one the snapshots would take {bytes} bytes, more than {max}: remove one of \
         storage.snapshot_dir, or raise snapshots.bytes_max"
    )]
    TooLarge {
        /// What they would take.
        bytes: u64,
        /// What they may take.
        max: u64,
    },
    /// The disk is too full.
    #[error(
        "a snapshot takes about {needed} bytes and {free} are free, of which {reserve} are kept \
         for the journal: make room, or put storage.snapshot_dir on another disk"
    )]
    NoRoom {
        /// What it takes.
        needed: u64,
        /// What is free.
        free: u64,
        /// What must stay free.
        reserve: u64,
    },
}

impl SnapshotPolicy {
    /// The snapshots that are past their retention.
    pub fn expired(&self, kept: &[KeptSnapshot], now: UnixMillis) -> Vec<UnixMillis> {
        let since = now.minus(self.retention_ms);
        kept.iter().map(|snapshot| snapshot.at).filter(|at| *at < since).collect()
    }

    /// Whether there may be one more beside those that are kept.
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
