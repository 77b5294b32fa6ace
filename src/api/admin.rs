//! `POST /api/v1/admin/snapshot`.

use std::path::PathBuf;

use actix_web::{HttpResponse, http::StatusCode, web};

use super::{ApiParts, answer};

pub(super) async fn snapshot(parts: web::Data<ApiParts>) -> HttpResponse {
    let Ok(_permit) = parts.snapshots.clone().try_acquire_owned() else {
        let message = "a snapshot is being made: wait until it is done";
        return answer::error(StatusCode::CONFLICT, "busy", message);
    };
    let made = web::block(move || {
        let now = parts.clock.moment();
        let name = now.clock.timestamp().strftime("%Y-%m-%dT%H%M%S%.3fZ").to_string();
        let target: PathBuf = parts.snapshot_dir.join(name);
        tracing::info!(target = %target.display(), "making a snapshot");
        let report = parts.store.snapshot(&target, now, &mut |file| {
            tracing::debug!(file, "copying");
        })?;
        tracing::info!(files = report.files, bytes = report.bytes, "made a snapshot");
        Ok(report)
    })
    .await;
    match made {
        Ok(Ok(report)) => HttpResponse::Ok().json(report),
        Ok(Err(cause)) => answer::store_error(&cause),
        Err(cause) => answer::error(StatusCode::INTERNAL_SERVER_ERROR, "failed", cause),
    }
}
