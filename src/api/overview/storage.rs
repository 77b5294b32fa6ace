//! `GET /api/v1/storage`: partitions, journal, head, catalog, and recent checkpoints.

use std::path::PathBuf;

use actix_web::{HttpResponse, web};
use serde::Serialize;

use super::{OverviewParts, respond};
use crate::{
    actors::BudgetUse,
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
    /// The next end of a document period of each granularity, finest first.
    forecast: Vec<Turn>,
    /// `None` without a disk budget.
    budget: Option<Budget>,
    checkpoints: Vec<Checkpoint>,
}

#[derive(Serialize)]
struct Disk {
    free: u64,
    total: u64,
}

/// The end of a document period, after which its documents are written.
#[derive(Serialize)]
struct Turn {
    granularity: String,
    at: i64,
    /// The size of the documents, including finer granularities whose periods end at this time.
    bytes: u64,
    /// The bytes that are reserved on the disk.
    reserved: u64,
    /// The bytes that the disk lacks.
    missing: u64,
}

/// The disk budget, and the partitions that it drops within a day.
#[derive(Serialize)]
struct Budget {
    bytes_max: u64,
    bytes: u64,
    /// The size of the store in a day without drops for the budget.
    bytes_ahead: u64,
    drops: Vec<DropAhead>,
}

/// A partition that will be dropped.
#[derive(Serialize)]
struct DropAhead {
    granularity: String,
    start: i64,
    end: i64,
    bytes: u64,
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
    let stored = query::storage(store, &parts.bounds, now);
    let disk = DiskSpace::of(&parts.data_dir).ok();
    let recent = parts.published.checkpoints.newest_first().into_iter();
    Answer {
        data_dir: parts.data_dir.clone(),
        disk: disk.map(|DiskSpace { free, total }| Disk { free, total }),
        preallocation: Preallocation::new(*parts.preallocation_enabled.get(), &stored),
        stored,
        forecast: forecast(parts),
        budget: parts.published.budget.last().map(|last| Budget::new(last, parts)),
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

impl Budget {
    fn new(last: BudgetUse, parts: &OverviewParts) -> Self {
        let BudgetUse { bytes_max, bytes, bytes_ahead, drops } = last;
        let store = &parts.admin.store;
        let drops = drops.into_iter().map(|partition| DropAhead {
            granularity: store.granularity(partition.id.granularity).name.clone(),
            start: partition.id.start.0,
            end: partition.end.0,
            bytes: partition.bytes,
        });
        Self { bytes_max, bytes, bytes_ahead, drops: drops.collect() }
    }
}

fn forecast(parts: &OverviewParts) -> Vec<Turn> {
    let turns = parts.published.forecast.turns().into_iter();
    let forecast = turns.map(|turn| Turn {
        granularity: turn.granularity,
        at: turn.at.0,
        bytes: turn.bytes,
        reserved: turn.reserved,
        missing: turn.missing,
    });
    forecast.collect()
}

impl Preallocation {
    fn new(enabled: bool, stored: &StorageAnswer) -> Self {
        let partitions =
            stored.granularities.iter().flat_map(|granularity| &granularity.partitions);
        Self {
            enabled,
            documents_ahead: partitions.map(|partition| partition.shells).sum(),
            until: stored
                .granularities
                .iter()
                .filter_map(|granularity| granularity.preallocated_until)
                .max(),
        }
    }
}
