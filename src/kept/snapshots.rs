//! Makes snapshots, one at a time, while there is room for them.
//!
//! Must never know: how a store is copied, and who asks. It works on the caller's thread.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::{
    clock::Clock,
    model::Moment,
    policy::{KeptSnapshot, SnapshotPolicy, SnapshotRefusal, SnapshotRoom},
    store::{SnapshotFolder, SnapshotReport, Store, StoreError},
    telemetry::Metrics,
};

/// Makes snapshots. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Snapshots {
    store: Store,
    clock: Arc<dyn Clock>,
    metrics: Metrics,
    settings: SnapshotSettings,
    under_way: Arc<Mutex<()>>,
}

/// Where snapshots are put, and how many.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the types say it")]
pub struct SnapshotSettings {
    pub folder: SnapshotFolder,
    pub policy: SnapshotPolicy,
    /// Bytes that a snapshot leaves free.
    pub reserve_bytes: u64,
}

/// Why there is no new snapshot.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotFault {
    /// There is one at a time.
    #[error("a snapshot is being made: wait until it is done")]
    UnderWay,
    /// There are as many as may be.
    #[error(transparent)]
    Limit(SnapshotRefusal),
    /// The disk has no room for one.
    #[error(transparent)]
    DiskFull(SnapshotRefusal),
    /// The folder of snapshots cannot be looked after.
    #[error("look after the folder of snapshots (storage.snapshot_dir)")]
    Folder(#[from] std::io::Error),
    /// The store cannot be copied.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<SnapshotRefusal> for SnapshotFault {
    fn from(refusal: SnapshotRefusal) -> Self {
        match refusal {
            SnapshotRefusal::NoRoom { .. } => Self::DiskFull(refusal),
            SnapshotRefusal::TooMany { .. } | SnapshotRefusal::TooLarge { .. } => {
                Self::Limit(refusal)
            }
        }
    }
}

impl Snapshots {
    /// Removes what a snapshot left that was cut short by the end of the process.
    pub fn new(
        store: Store,
        clock: Arc<dyn Clock>,
        metrics: Metrics,
        settings: SnapshotSettings,
    ) -> Self {
        match settings.folder.remove_unfinished() {
            Ok(0) => {}
            Ok(count) => tracing::info!(count, "removed snapshots that were cut short"),
            Err(cause) => tracing::warn!(%cause, "cannot remove snapshots that were cut short"),
        }
        Self { store, clock, metrics, settings, under_way: Arc::default() }
    }

    /// Makes a snapshot, and removes those that are past their retention.
    ///
    /// # Errors
    /// When there is no room, or one is being made, or the disk does not do what it should.
    pub fn make(&self) -> Result<SnapshotReport, SnapshotFault> {
        let _one = self.under_way.try_lock().ok_or(SnapshotFault::UnderWay)?;
        let made = self.make_alone(self.clock.moment());
        if matches!(made, Err(SnapshotFault::Limit(_) | SnapshotFault::DiskFull(_))) {
            self.metrics.snapshots_refused.inc();
        }
        made
    }

    fn make_alone(&self, now: Moment) -> Result<SnapshotReport, SnapshotFault> {
        let SnapshotSettings { folder, policy, reserve_bytes } = &self.settings;
        folder.remove_unfinished()?;
        let kept = folder.list()?.into_iter().map(|(at, bytes)| KeptSnapshot { at, bytes });
        let mut kept: Vec<_> = kept.collect();
        for at in policy.expired(&kept, now.earliest()) {
            folder.remove(at)?;
            kept.retain(|snapshot| snapshot.at != at);
            tracing::info!(snapshot = %folder.path(at).display(), "removed an old snapshot");
        }
        let room = SnapshotRoom {
            needed: self.store.file_bytes(),
            free: folder.free_bytes()?,
            reserve: *reserve_bytes,
        };
        policy.check(&kept, &room)?;
        let target = folder.path(now.clock);
        tracing::info!(target = %target.display(), "making a snapshot");
        let report = self.store.snapshot(&target, now, &mut |file| {
            tracing::debug!(file, "copying");
        })?;
        tracing::info!(files = report.files, bytes = report.bytes, "made a snapshot");
        Ok(report)
    }
}
