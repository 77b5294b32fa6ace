//! `GET /api/v1/dashboards`; `GET`, `PUT` and `DELETE` of `/api/v1/dashboards/{name}`.

use actix_web::{
    HttpRequest, HttpResponse,
    web::{self, Query},
};
use serde::Deserialize;
use serde_json::{json, value::RawValue};

use super::{ObjectsParts, respond};
use crate::{
    api::{answer, refusal::Refusal},
    kept::{Dashboard, ObjectFault, dashboards},
    query::QueryError,
};

/// The body of a save.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SaveRequest<'a> {
    /// The version that the save replaces; none for a new dashboard.
    version: Option<u64>,
    #[serde(borrow)]
    dashboard: &'a RawValue,
}

/// `DELETE /api/v1/dashboards/{name}?version=7`; a damaged dashboard has no version.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DeleteParams {
    version: Option<u64>,
}

pub(super) async fn list(parts: web::Data<ObjectsParts>) -> HttpResponse {
    let found = move || dashboards::list(&parts.store, &parts.dashboard_files);
    respond(found, |found| HttpResponse::Ok().json(found)).await
}

pub(super) async fn get(name: web::Path<String>, parts: web::Data<ObjectsParts>) -> HttpResponse {
    let found = move || dashboards::get(&parts.store, &parts.dashboard_files, &name);
    respond(found, |found| HttpResponse::Ok().json(found)).await
}

pub(super) async fn put(
    name: web::Path<String>,
    request: HttpRequest,
    payload: web::Payload,
    parts: web::Data<ObjectsParts>,
) -> Result<HttpResponse, Refusal> {
    let body = parts.bodies.receive_change(&request, payload).await?;
    let name = name.into_inner();
    let saved_name = name.clone();
    let save = move || {
        let save = serde_json::from_slice::<SaveRequest<'_>>(&body.bytes)
            .map_err(|cause| ObjectFault::Invalid(format!("body: {cause}")))?;
        let dashboard = Dashboard::read(save.dashboard.get())?;
        let (store, files, now) = (&parts.store, &parts.dashboard_files, parts.clock.now());
        dashboards::put(store, files, &saved_name, save.version, &dashboard, now)
    };
    let saved_response =
        |version| HttpResponse::Ok().json(json!({ "name": name, "version": version }));
    Ok(respond(save, saved_response).await)
}

pub(super) async fn delete(
    name: web::Path<String>,
    params: Result<Query<DeleteParams>, actix_web::Error>,
    parts: web::Data<ObjectsParts>,
) -> HttpResponse {
    let DeleteParams { version } = match params {
        Ok(params) => params.into_inner(),
        Err(cause) => return answer::query_error(&QueryError::Invalid(cause.to_string())),
    };
    let delete = move || dashboards::delete(&parts.store, &parts.dashboard_files, &name, version);
    respond(delete, |()| HttpResponse::NoContent().finish()).await
}
