//! `GET /api/v1/storage`: partitions, journal, head, catalog, and recent checkpoints.

use std::path::PathBuf;

use actix_web::{HttpResponse, web};
use serde::Serialize;

use super::{OverviewParts, respond};
use crate::{
    query::{self, StorageAnswer},
    store::DiskSpace,
};

#[derive(Serialize)]
struct Answer {
    data_dir: PathBuf,
    disk: Option<Disk>,
    #[serde(flatten)]
    stored: StorageAnswer,
    preallocation: Preallocation,
    checkpoints: Vec<Checkpoint>,
}

#[derive(Serialize)]
struct Disk {
    free: u64,
    total: u64,
}

/// Preallocated shells of future documents.
#[derive(Serialize)]
struct Preallocation {
    enabled: bool,
    documents_ahead: Option<u64>,
    until: Option<i64>,
}

#[derive(Serialize)]
struct Checkpoint {
    at: i64,
    elapsed_ms: u64,
    cells: u64,
    documents: u64,
    bytes_written: u64,
}

pub(super) async fn storage(parts: web::Data<OverviewParts>) -> HttpResponse {
    respond(parts, collect).await
}

fn collect(parts: &OverviewParts) -> Answer {
    let (store, now) = (&parts.admin.store, parts.admin.clock.now());
    let stored = query::storage(store, &parts.bounds.get(), now);
    let disk = DiskSpace::of(&parts.data_dir).ok();
    let recent = parts.published.checkpoints.last().into_iter();
    Answer {
        data_dir: parts.data_dir.clone(),
        disk: disk.map(|DiskSpace { free, total }| Disk { free, total }),
        preallocation: Preallocation::new(*parts.preallocation_enabled.get(), &stored),
        stored,
        checkpoints: recent
            .map(|checkpoint| Checkpoint {
                at: checkpoint.at.0,
                elapsed_ms: checkpoint.elapsed_ms,
                cells: checkpoint.cells,
                documents: checkpoint.documents,
                bytes_written: checkpoint.bytes_written,
            })
            .collect(),
    }
}

impl Preallocation {
    fn new(enabled: bool, stored: &StorageAnswer) -> Self {
        let partitions = stored.granularities.iter().flat_map(|level| &level.partitions);
        Self {
            enabled,
            documents_ahead: partitions.map(|partition| partition.shells).sum(),
            until: stored.granularities.iter().filter_map(|level| level.preallocated_until).max(),
        }
    }
}
