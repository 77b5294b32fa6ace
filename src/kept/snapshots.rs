//! Creation of snapshots, one at a time, within the limits of count and disk space.
//!
//! Snapshots are created on the caller's thread. Must never know: the copying of a store, callers.

use std::sync::Arc;

use parking_lot::Mutex;

use super::LiveValue;
use crate::{
    clock::Clock,
    model::Moment,
    policy::{KeptSnapshot, SnapshotPolicy, SnapshotRefusal, SnapshotRoom},
    store::{SnapshotFolder, SnapshotReport, Store, StoreError},
    telemetry::Metrics,
};

/// The handle that creates snapshots. Clones are cheap.
#[derive(Debug, Clone)]
pub struct Snapshots {
    store: Store,
    clock: Arc<dyn Clock>,
    metrics: Metrics,
    settings: LiveValue<SnapshotSettings>,
    creation_lock: Arc<Mutex<()>>,
}

/// The folder and the limits of snapshots.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the types describe the fields")]
pub struct SnapshotSettings {
    pub folder: SnapshotFolder,
    pub policy: SnapshotPolicy,
    /// The space that a snapshot must leave free, in bytes.
    pub reserve_bytes: u64,
}

/// The reason why no snapshot was created.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotFault {
    /// Another snapshot is in progress.
    #[error("a snapshot is in progress: wait until it is done")]
    InProgress,
    /// The maximum number of snapshots exists.
    #[error(transparent)]
    Limit(SnapshotRefusal),
    /// The disk has too little space.
    #[error(transparent)]
    DiskFull(SnapshotRefusal),
    /// The folder of snapshots cannot be read or changed.
    #[error("read or clean up the folder of snapshots (storage.snapshot_dir)")]
    Folder(#[from] std::io::Error),
    /// The store cannot be copied.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<SnapshotRefusal> for SnapshotFault {
    fn from(refusal: SnapshotRefusal) -> Self {
        match refusal {
            SnapshotRefusal::NoRoom { .. } => Self::DiskFull(refusal),
            SnapshotRefusal::TooMany { .. } => Self::Limit(refusal),
        }
    }
}

impl Snapshots {
    /// Creates the handle, and removes incomplete snapshots of an earlier process.
    pub fn new(
        store: Store,
        clock: Arc<dyn Clock>,
        metrics: Metrics,
        settings: LiveValue<SnapshotSettings>,
    ) -> Self {
        match settings.get().folder.remove_unfinished() {
            Ok(0) => {}
            Ok(count) => tracing::info!(count, "removed incomplete snapshots"),
            Err(cause) => tracing::warn!(%cause, "cannot remove incomplete snapshots"),
        }
        Self { store, clock, metrics, settings, creation_lock: Arc::default() }
    }

    /// Creates a snapshot, and removes expired snapshots.
    ///
    /// # Errors
    /// There is no room, another snapshot is in progress, or the disk fails.
    pub fn create(&self) -> Result<SnapshotReport, SnapshotFault> {
        let _turn = self.creation_lock.try_lock().ok_or(SnapshotFault::InProgress)?;
        let outcome = self.create_alone(self.clock.moment());
        if matches!(outcome, Err(SnapshotFault::Limit(_) | SnapshotFault::DiskFull(_))) {
            self.metrics.snapshots_refused.inc();
        }
        outcome
    }

    /// Returns true while a snapshot is created.
    pub fn is_creating(&self) -> bool {
        self.creation_lock.is_locked()
    }

    fn create_alone(&self, now: Moment) -> Result<SnapshotReport, SnapshotFault> {
        let SnapshotSettings { folder, policy, reserve_bytes } = &*self.settings.get();
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
        tracing::info!(target = %target.display(), "creating a snapshot");
        let report = self.store.snapshot(&target, now, &mut |file| {
            tracing::debug!(file, "copying");
        })?;
        let earlier_bytes: u64 = kept.iter().map(|snapshot| snapshot.bytes).sum();
        let (files, bytes) = (report.files, report.bytes);
        tracing::info!(files, bytes, earlier_bytes, "created a snapshot");
        Ok(report)
    }
}
