//! `DELETE /api/v1/series` and `POST /api/v1/admin/series/delete` with a start and an end: the
//! samples of series are erased, and the series stay.
//!
//! A checkpoint runs before the writer accepts an erasure, so that the checkpoint of the erasure
//! itself is short.

use std::ops::Range;

use actix_web::{HttpResponse, http::StatusCode, web};
use tokio::sync::Mutex;

use crate::{
    api::{AdminParts, answer, query::range_between, refusal},
    model::UnixMillis,
    query::{ErasureAnswer, QueryError, Selector},
    store::{ErasureRefusal, ErasureReport, ErasureRequest, StoreError},
};

/// Held while a request is processed: one at a time.
static RUNNING: Mutex<()> = Mutex::const_new(());
/// The number of attempts while checkpoints or snapshots run.
const ATTEMPTS: usize = 20;

/// Returns the range of an erasure; `None` when the series themselves are to be deleted.
pub(super) fn range(
    start: Option<&str>,
    end: Option<&str>,
    now: UnixMillis,
) -> Result<Option<Range<UnixMillis>>, QueryError> {
    match (start, end) {
        (None, None) => Ok(None),
        (Some(_), Some(end)) => range_between(start, end, now).map(Some),
        (Some(_), None) | (None, Some(_)) => Err(QueryError::Invalid(
            "start and end are required together: with both, samples are deleted and the series \
             stay; without both, the series are deleted"
                .to_owned(),
        )),
    }
}

/// Erases the samples of the matching series.
pub(super) async fn erase(
    selector: &Selector,
    range: Range<UnixMillis>,
    dry_run: bool,
    parts: web::Data<AdminParts>,
) -> HttpResponse {
    let Ok(_running) = RUNNING.try_lock() else {
        let message = "another request deletes samples: retry when it is complete";
        return answer::error(StatusCode::SERVICE_UNAVAILABLE, "busy", message);
    };
    let times = (range.start, range.end);
    let request = ErasureRequest { matchers: selector.matchers(), range };
    let before = parts.store.counters().cells_erased.get();
    let report = match accept(&request, dry_run, &parts).await {
        Ok(report) => report,
        Err(refused) => return refused,
    };
    if dry_run {
        return HttpResponse::Ok().json(ErasureAnswer::dry(report, times));
    }
    if let Err(failed) = block(&parts, |parts| parts.store.complete_erasure()).await {
        return failed;
    }
    let cells = parts.store.counters().cells_erased.get().saturating_sub(before);
    HttpResponse::Ok().json(ErasureAnswer::done(&report, cells, times))
}

/// Sends the erasure to the writer, which accepts it only between two checkpoints.
async fn accept(
    request: &ErasureRequest,
    dry_run: bool,
    parts: &web::Data<AdminParts>,
) -> Result<ErasureReport, HttpResponse> {
    for _ in 0..ATTEMPTS {
        // These calls also wait until a running checkpoint or snapshot is complete.
        if dry_run {
            block(parts, |parts| parts.store.complete_erasure()).await?;
        } else {
            block(parts, |parts| parts.store.checkpoint(parts.clock.moment())).await?;
        }
        match parts.writer.erase(request.clone(), dry_run).await {
            Ok(Ok(report)) => return Ok(report),
            Ok(Err(ErasureRefusal::Running)) => {}
            Ok(Err(refusal)) => return Err(refused(&refusal)),
            Err(fault) => return Err(refusal::write_fault(&fault)),
        }
    }
    Err(refused(&ErasureRefusal::Running))
}

fn refused(refusal: &ErasureRefusal) -> HttpResponse {
    let (status, code) = match refusal {
        ErasureRefusal::NoCondition | ErasureRefusal::EmptyRange => {
            (StatusCode::BAD_REQUEST, "invalid")
        }
        ErasureRefusal::TooManySeries(_) | ErasureRefusal::TooManyDocuments(_) => {
            (StatusCode::UNPROCESSABLE_ENTITY, "too_much")
        }
        ErasureRefusal::Cut(_) | ErasureRefusal::Histograms(_) => {
            (StatusCode::CONFLICT, "conflict")
        }
        ErasureRefusal::Running => (StatusCode::SERVICE_UNAVAILABLE, "busy"),
    };
    answer::error(status, code, refusal)
}

/// Runs an operation of the store outside of the HTTP workers.
async fn block<T: Send + 'static>(
    parts: &web::Data<AdminParts>,
    run: impl FnOnce(&AdminParts) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, HttpResponse> {
    let parts = parts.clone();
    match web::block(move || run(&parts)).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(cause)) => Err(answer::store_error(&cause)),
        Err(cause) => Err(answer::error(StatusCode::INTERNAL_SERVER_ERROR, "failed", cause)),
    }
}
