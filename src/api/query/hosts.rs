//! `GET /api/v1/hosts`.

use actix_web::{
    HttpResponse,
    web::{self, Query},
};
use serde::Deserialize;

use super::endpoints::respond;
use crate::{
    actors::KnownHosts,
    api::QueryParts,
    query::{HostsAnswer, QueryError},
};

/// Which hosts.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Which {
    /// One of them; all when it is left out.
    host: Option<String>,
}

pub(super) async fn hosts(
    params: Result<Query<Which>, actix_web::Error>,
    parts: web::Data<QueryParts>,
) -> HttpResponse {
    let params =
        params.map(Query::into_inner).map_err(|cause| QueryError::Invalid(cause.to_string()));
    respond("hosts", params, parts, |which, parts, budget| {
        let (now, hosts) = parts.hosts.list(which.host.as_deref());
        budget.take(HostsAnswer::bytes(&hosts))?;
        let after = (KnownHosts::LATE_AFTER_MS, KnownHosts::DOWN_AFTER_MS);
        Ok(HostsAnswer::new(hosts, after, now))
    })
    .await
}
