//! `GET /api/v1/senders`, `DELETE /api/v1/senders` and `POST /api/v1/admin/senders/remove`.

use std::{collections::BTreeSet, sync::Arc};

use actix_web::{
    HttpRequest, HttpResponse,
    web::{self, Query},
};
use serde::Deserialize;

use super::series;
use crate::{
    api::{AdminParts, answer, refusal},
    model::Span,
    query::{self, QueryError, SendersAnswer, SendersRemoved},
};

/// A selection of senders by name, prefix and idle time.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SenderSelection {
    /// The name of a sender.
    agent: Option<String>,
    /// More names of senders.
    #[serde(default)]
    agents: BTreeSet<String>,
    /// A prefix of the senders' names.
    prefix: Option<String>,
    /// The minimum time since the sender's last batch, such as `7d`.
    idle: Option<String>,
    #[serde(default)]
    dry_run: bool,
}

impl SenderSelection {
    fn select(mut self, parts: &AdminParts) -> Result<SendersAnswer, QueryError> {
        self.agents.extend(self.agent.take());
        let idle_ms = match self.idle.as_deref().map(str::parse::<Span>) {
            None => None,
            Some(Ok(Span::Fixed(idle_ms))) => Some(idle_ms),
            Some(Ok(Span::Months(_)) | Err(_)) => {
                return Err(QueryError::Invalid(
                    "idle must be a duration such as 12h or 7d".into(),
                ));
            }
        };
        // The earliest time that the clock allows: a doubted clock must not remove senders.
        let now = parts.clock.moment().earliest();
        let prefix = self.prefix.as_deref().unwrap_or_default();
        Ok(query::senders(&parts.store, &self.agents, prefix, idle_ms, now))
    }
}

type Params = Result<Query<SenderSelection>, actix_web::Error>;

pub(super) async fn list(params: Params, parts: web::Data<AdminParts>) -> HttpResponse {
    match read(params).and_then(|selection| selection.select(&parts)) {
        Ok(listed) => HttpResponse::Ok().json(listed),
        Err(cause) => answer::query_error(&cause),
    }
}

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
    if selection.agent.is_none() && selection.agents.is_empty() && selection.idle.is_none() {
        let message =
            "no sender is selected and nothing was changed; set agents or idle".to_owned();
        return answer::query_error(&QueryError::Invalid(message));
    }
    let is_dry_run = selection.dry_run;
    let listed = match selection.select(parts) {
        Ok(listed) => listed,
        Err(cause) => return answer::query_error(&cause),
    };
    if is_dry_run {
        return HttpResponse::Ok().json(SendersRemoved::dry_run(listed));
    }
    let agents: Vec<Arc<str>> =
        listed.senders.iter().map(|sender| sender.agent.as_str().into()).collect();
    match parts.writer.forget_senders(agents).await {
        Ok(total) => HttpResponse::Ok().json(SendersRemoved { total, ..SendersRemoved::default() }),
        Err(fault) => refusal::write_fault(&fault),
    }
}
