//! `POST /api/v1/admin/snapshot`.

use actix_web::{HttpResponse, http::StatusCode, web};

use crate::{
    api::{AdminParts, answer},
    kept::SnapshotFault,
};

pub(super) async fn snapshot(parts: web::Data<AdminParts>) -> HttpResponse {
    let made = web::block(move || parts.snapshots.create()).await;
    let failed = |cause: &dyn std::fmt::Display| {
        answer::error(StatusCode::INTERNAL_SERVER_ERROR, "failed", cause)
    };
    match made {
        Ok(Ok(report)) => HttpResponse::Ok().json(report),
        Ok(Err(cause @ SnapshotFault::InProgress)) => {
            answer::error(StatusCode::CONFLICT, "busy", cause)
        }
        Ok(Err(cause @ SnapshotFault::DiskFull(_))) => {
            answer::error(StatusCode::INSUFFICIENT_STORAGE, "disk_full", cause)
        }
        Ok(Err(cause @ SnapshotFault::Limit(_))) => {
            answer::error(StatusCode::CONFLICT, "limit", cause)
        }
        Ok(Err(SnapshotFault::Store(cause))) => answer::store_error(&cause),
        Ok(Err(SnapshotFault::Folder(cause))) => failed(&format!("storage.snapshot_dir: {cause}")),
        Err(cause) => failed(&cause),
    }
}
