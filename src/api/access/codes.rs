//! One-time codes, `GET` and `POST /api/v1/access/codes`, `DELETE /api/v1/access/codes/{id}`, and
//! the keys of senders that use them, `POST /api/v1/access/enroll` and `/api/v1/access/renew`.
//!
//! Must never know: how codes and keys are stored and checked.

use actix_web::{HttpRequest, HttpResponse, http::Method, web};
use granary_protocol::{ENROLL_PATH, EnrollBody, RENEW_PATH};
use serde::Deserialize;
use serde_json::json;

use super::{check_still, parsed, respond};
use crate::{
    access::{
        Caller, CodeRecord, KeyProject, NAME_BYTES_MAX, NewCode, Purpose, Scope as KeyScope, Scopes,
    },
    api::{
        body::must_be_json,
        caller::{AccessParts, caller, note_caller, note_object},
        refusal::Refusal,
        scope::Scope,
    },
    kept::{KeyFault, NewCodeAnswer, NewKeyAnswer, ObjectFault},
    model::{AuditKind, ProjectName, SenderLimit},
};

/// The validity of a code by default: a day.
const VALID_MS: i64 = 86_400_000;
/// The lifetime of a key by default: 90 days.
const KEY_LIFE_MS: i64 = 90 * 86_400_000;
/// The maximum size of a request for a key.
const ENROLL_BYTES_MAX: usize = 4096;
/// The maximum size of a sender's name in bytes; the name of its key may get a suffix.
const SENDER_BYTES_MAX: usize = NAME_BYTES_MAX - 16;

/// The body of a request for a code.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CodeRequest {
    #[serde(default)]
    project: Option<ProjectName>,
    #[serde(default)]
    senders: Option<String>,
    #[serde(default = "default_valid_ms")]
    valid_ms: i64,
    #[serde(default = "default_key_life_ms")]
    key_life_ms: i64,
}

fn default_valid_ms() -> i64 {
    VALID_MS
}

fn default_key_life_ms() -> i64 {
    KEY_LIFE_MS
}

/// Registers the routes.
pub(super) fn routes(scope: &mut Scope<'_, AccessParts>) {
    scope.route(Method::GET, "/api/v1/access/codes", list);
    scope.route(Method::POST, "/api/v1/access/codes", create);
    scope.route(Method::DELETE, "/api/v1/access/codes/{id}", revoke);
    scope.route(Method::POST, ENROLL_PATH, enroll);
    scope.route(Method::POST, RENEW_PATH, renew);
}

async fn list(request: HttpRequest, parts: web::Data<AccessParts>) -> HttpResponse {
    let codes = parts.codes.list(caller(&request).as_ref(), parts.clock.now());
    HttpResponse::Ok().json(json!({ "codes": codes }))
}

async fn create(
    request: HttpRequest,
    payload: web::Payload,
    parts: web::Data<AccessParts>,
) -> Result<HttpResponse, Refusal> {
    let body = parts.bodies.receive_change(&request, payload).await?;
    let caller = caller(&request);
    let create = move || {
        let CodeRequest { project, senders, valid_ms, key_life_ms } = parsed(&body)?;
        check_still(&parts, caller.as_ref())?;
        let own = match caller.as_ref().map(Caller::project) {
            Some(KeyProject::One(own)) => own,
            Some(KeyProject::All) | None => ProjectName::default(),
        };
        let project = project.unwrap_or(own);
        let scopes = Scopes::of(&[KeyScope::Ingest]);
        if let Some(caller) = &caller {
            // The key has no fixed time of expiry, because its holder renews it.
            let granted = caller.may_grant(
                scopes,
                &KeyProject::One(project.clone()),
                senders.as_deref(),
                None,
            );
            granted.map_err(KeyFault::Forbidden)?;
        }
        let (purpose, key_life_ms) = (Purpose::Enroll, Some(key_life_ms));
        let new = NewCode { purpose, scopes, project, senders, valid_ms, key_life_ms };
        let created_by = caller.as_ref().map(Caller::name).unwrap_or_default();
        parts.codes.create(new, created_by, parts.clock.now())
    };
    let answer = |made: NewCodeAnswer| {
        note_object(&request, made.id());
        HttpResponse::Created().json(made)
    };
    Ok(respond(create, answer).await)
}

async fn revoke(
    id: web::Path<String>,
    request: HttpRequest,
    parts: web::Data<AccessParts>,
) -> HttpResponse {
    let caller = caller(&request);
    let revoke = move || parts.codes.revoke(&id, caller.as_ref());
    respond(revoke, |()| HttpResponse::NoContent().finish()).await
}

/// Exchanges a sender's code for a key of its own.
async fn enroll(
    request: HttpRequest,
    payload: web::Payload,
    parts: web::Data<AccessParts>,
) -> Result<HttpResponse, Refusal> {
    must_be_json(&request)?;
    if let Some(refused) = parts.unread() {
        return Ok(refused);
    }
    let body = parts.bodies.receive_query(&request, payload, ENROLL_BYTES_MAX).await?;
    let access = parts.clone();
    let enroll = move || {
        let EnrollBody { code, sender } = parsed(&body)?;
        let now = access.clock.now();
        let accepts = |record: &CodeRecord| check_sender(&sender, record);
        match access.codes.redeem(&code, Purpose::Enroll, now, accepts) {
            Err(KeyFault::WrongCode) => Ok(None),
            outcome => access.keys.enroll(&sender, &outcome?, now).map(Some),
        }
    };
    let answer = |made| match made {
        Some(made) => {
            let made: NewKeyAnswer = made;
            note_caller(&request, AuditKind::Code, made.name());
            note_object(&request, made.name());
            HttpResponse::Created().json(made)
        }
        None => parts.refuse_code(&request),
    };
    Ok(respond(enroll, answer).await)
}

/// Checks the name of a sender before its code is used up.
fn check_sender(sender: &str, code: &CodeRecord) -> Result<(), ObjectFault> {
    if sender.trim().is_empty() || sender.contains(char::is_control) {
        let message = "sender: send the name of the agent, without control characters";
        return Err(ObjectFault::Invalid(message.to_owned()));
    }
    if sender.len() > SENDER_BYTES_MAX {
        return Err(ObjectFault::Invalid(format!("sender: use at most {SENDER_BYTES_MAX} bytes")));
    }
    let limit = code.senders.as_ref().map(|prefix| SenderLimit::new(prefix, false));
    match limit.filter(|limit| !limit.allows(sender)) {
        Some(limit) => {
            let message = format!("sender: the code is for agents whose name {limit}");
            Err(ObjectFault::Invalid(message))
        }
        None => Ok(()),
    }
}

/// Renews the caller's key.
async fn renew(request: HttpRequest, parts: web::Data<AccessParts>) -> HttpResponse {
    let caller = caller(&request);
    let renew = move || {
        let without = || ObjectFault::Invalid("send the request with the key to renew".to_owned());
        let Some(Caller::Key(key)) = caller else { return Err(without().into()) };
        parts.keys.renew(&key, parts.clock.now())
    };
    respond(renew, |made| HttpResponse::Ok().json(made)).await
}
