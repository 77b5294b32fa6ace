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

/// Which senders: those that are named and, when both are given, silent for so long.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Which {
    /// One of them.
    agent: Option<String>,
    /// Several.
    #[serde(default)]
    agents: BTreeSet<String>,
    /// The prefix of their names.
    prefix: Option<String>,
    /// Such as `7d`.
    idle: Option<String>,
    #[serde(default)]
    dry_run: bool,
}

impl Which {
    fn select(mut self, parts: &AdminParts) -> Result<SendersAnswer, QueryError> {
        self.agents.extend(self.agent.take());
        let idle_ms = match self.idle.as_deref().map(str::parse::<Span>) {
            None => None,
            Some(Ok(Span::Fixed(idle_ms))) => Some(idle_ms),
            Some(Ok(Span::Months(_)) | Err(_)) => {
                return Err(QueryError::Invalid("idle is no span of time; use 12h or 7d".into()));
            }
        };
        // What is removed is not decided by a clock that is doubted.
        let now = parts.clock.moment().earliest();
        let prefix = self.prefix.as_deref().unwrap_or_default();
        Ok(query::senders(&parts.store, &self.agents, prefix, idle_ms, now))
    }
}

type Params = Result<Query<Which>, actix_web::Error>;

pub(super) async fn list(params: Params, parts: web::Data<AdminParts>) -> HttpResponse {
    match read(params).and_then(|which| which.select(&parts)) {
        Ok(listed) => HttpResponse::Ok().json(listed),
        Err(cause) => answer::query_error(&cause),
    }
}

pub(super) async fn remove_matching(params: Params, parts: web::Data<AdminParts>) -> HttpResponse {
    match read(params) {
        Ok(which) => respond(which, &parts).await,
        Err(cause) => answer::query_error(&cause),
    }
}

pub(super) async fn remove(
    request: HttpRequest,
    payload: web::Payload,
    parts: web::Data<AdminParts>,
) -> HttpResponse {
    match series::read::<Which>(&request, payload, &parts).await {
        Ok(which) => respond(which, &parts).await,
        Err(refused) => refused,
    }
}

fn read(params: Params) -> Result<Which, QueryError> {
    params.map(Query::into_inner).map_err(|cause| QueryError::Invalid(cause.to_string()))
}

async fn respond(which: Which, parts: &AdminParts) -> HttpResponse {
    if which.agent.is_none() && which.agents.is_empty() && which.idle.is_none() {
        let message = "name senders with agents, or give idle; nothing was changed".to_owned();
        return answer::query_error(&QueryError::Invalid(message));
    }
    let dry_run = which.dry_run;
    let listed = match which.select(parts) {
        Ok(listed) => listed,
        Err(cause) => return answer::query_error(&cause),
    };
    if dry_run {
        return HttpResponse::Ok().json(SendersRemoved { dry_run, ..listed.into() });
    }
    let agents: Vec<Arc<str>> =
        listed.senders.iter().map(|own| own.agent.as_str().into()).collect();
    match parts.writer.forget(agents).await {
        Ok(total) => HttpResponse::Ok().json(SendersRemoved { total, ..SendersRemoved::default() }),
        Err(fault) => refusal::write_fault(&fault),
    }
}
