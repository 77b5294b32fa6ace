//! `DELETE /api/v1/senders` and `POST /api/v1/admin/senders/remove`.

use std::sync::Arc;

use actix_web::{
    HttpRequest, HttpResponse,
    web::{self, Query},
};

use super::series;
use crate::{
    api::{AdminParts, answer, query::SenderSelection, refusal},
    query::{QueryError, SendersRemoved},
};

type Params = Result<Query<SenderSelection>, actix_web::Error>;

pub(super) async fn remove_matching(params: Params, parts: web::Data<AdminParts>) -> HttpResponse {
    match read(params) {
        Ok(selection) => respond(selection, &parts).await,
        Err(cause) => answer::query_error(&cause),
    }
}

pub(super) async fn remove(
    request: HttpRequest,
    payload: web::Payload,
    parts: web::Data<AdminParts>,
) -> HttpResponse {
    match series::read::<SenderSelection>(&request, payload, &parts).await {
        Ok(selection) => respond(selection, &parts).await,
        Err(refused) => refused,
    }
}

fn read(params: Params) -> Result<SenderSelection, QueryError> {
    params.map(Query::into_inner).map_err(|cause| QueryError::Invalid(cause.to_string()))
}

async fn respond(selection: SenderSelection, parts: &AdminParts) -> HttpResponse {
    if !selection.selects() {
        let message =
            "no sender is selected and nothing was changed; set agents or idle".to_owned();
        return answer::query_error(&QueryError::Invalid(message));
    }
    // The earliest time that the clock allows: a doubted clock must not remove senders.
    let now = parts.clock.moment().earliest();
    let listed = match selection.request() {
        Ok(request) => request.list(&parts.store, now),
        Err(cause) => return answer::query_error(&cause),
    };
    if selection.dry_run {
        return HttpResponse::Ok().json(SendersRemoved::dry_run(listed));
    }
    let agents: Vec<Arc<str>> =
        listed.senders.iter().map(|sender| sender.agent.as_str().into()).collect();
    match parts.writer.forget_senders(agents).await {
        Ok(total) => HttpResponse::Ok().json(SendersRemoved { total, ..SendersRemoved::default() }),
        Err(fault) => refusal::write_fault(&fault),
    }
}
