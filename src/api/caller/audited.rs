//! The audit of requests: records of changes and of refused callers.
//!
//! Must never know: how records are stored.

use std::net::IpAddr;

use actix_web::{
    HttpMessage, HttpRequest,
    dev::{RequestHead, ServiceResponse},
    http::{Method, StatusCode},
    web,
};

use super::{AccessParts, attempts::address, refusal::AccessRefusal};
use crate::{
    access::{Caller, RefusedCaller, Right, RouteRow},
    kept::AuditPermit,
    model::{AuditKind, AuditOutcome, AuditRecord, UnixMillis, audit_text},
    telemetry::without_secrets,
};

/// The facts that a handler knows about its change.
#[derive(Debug, Clone, Default)]
struct ChangeNote {
    /// The object.
    object: Option<String>,
    /// The caller of a route that identifies callers itself.
    caller: Option<(AuditKind, String)>,
}

/// Notes the object of a change for its record. The text must contain no secret.
pub(in crate::api) fn note_object(request: &HttpRequest, object: &str) {
    note(request, |note| note.object = Some(audit_text(object)));
}

/// Notes the caller of a route that identifies callers itself, such as by a code.
pub(in crate::api) fn note_caller(request: &HttpRequest, kind: AuditKind, name: &str) {
    note(request, |note| note.caller = Some((kind, audit_text(name))));
}

fn note(request: &HttpRequest, change: impl FnOnce(&mut ChangeNote)) {
    let mut extensions = request.extensions_mut();
    let mut known = extensions.remove::<ChangeNote>().unwrap_or_default();
    change(&mut known);
    extensions.insert(known);
}

/// Returns true when requests of this method to a route are changes to record.
pub(super) fn is_change(row: &RouteRow, method: &Method) -> bool {
    row.audited && ![Method::GET, Method::HEAD].contains(method)
}

/// Writes the record of a change, durably.
pub(super) async fn record_change<B>(
    access: &AccessParts,
    row: &RouteRow,
    caller: Option<&Caller>,
    response: &ServiceResponse<B>,
    permit: AuditPermit,
) {
    let (request, status) = (response.request(), response.status());
    // Anybody may send any number of requests to an open route. Their refusals are therefore
    // joined, and not recorded one by one.
    if row.right == Right::Open && !status.is_success() {
        return;
    }
    let known = request.extensions_mut().remove::<ChangeNote>().unwrap_or_default();
    let by_key = || {
        let caller = caller?;
        let kind = match caller {
            Caller::Key(_) => AuditKind::Key,
            Caller::User(_) => AuditKind::User,
            Caller::Client(_) => AuditKind::Client,
        };
        Some((kind, caller.name().to_owned()))
    };
    let (kind, who) =
        known.caller.or_else(by_key).unwrap_or_else(|| (AuditKind::None, String::new()));
    let record = AuditRecord {
        seq: 0,
        at: access.clock.now().0,
        kind,
        who,
        address: address(request).to_canonical().to_string(),
        action: format!("{} {}", request.method(), row.path),
        object: known.object.unwrap_or_else(|| object_of(request)),
        outcome: outcome_of(status),
        status: status.as_u16(),
        reason: String::new(),
        count: 1,
    };
    let audit = access.audit.clone();
    if web::block(move || audit.write(record, permit)).await.is_err() {
        tracing::error!("the daemon is stopping; a change has no record in the audit");
    }
}

/// Returns the variables of the path, or else the parameters.
fn object_of(request: &HttpRequest) -> String {
    let variables: Vec<_> = request.match_info().iter().map(|(_, value)| value).collect();
    let text =
        if variables.is_empty() { request.query_string().to_owned() } else { variables.join(" ") };
    audit_text(&without_secrets(&text))
}

fn outcome_of(status: StatusCode) -> AuditOutcome {
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS => {
            AuditOutcome::Refused
        }
        status if status.is_success() || status.is_redirection() => AuditOutcome::Done,
        _ => AuditOutcome::Failed,
    }
}

/// Notes a refused caller. A request without a key does not count as refused: browsers and some
/// senders send one first.
pub(super) fn note_refusal(
    access: &AccessParts,
    refusal: &AccessRefusal,
    head: &RequestHead,
    address: Option<IpAddr>,
    now: UnixMillis,
) {
    let (kind, who) = match refusal {
        AccessRefusal::Wrong | AccessRefusal::TooManyWrong => (AuditKind::None, ""),
        AccessRefusal::WrongCode => (AuditKind::Code, ""),
        AccessRefusal::Lacks { kind, name, .. }
        | AccessRefusal::OtherProject { kind, name, .. }
        | AccessRefusal::OneProject { kind, name, .. }
        | AccessRefusal::NoProject { kind, name, .. } => match *kind {
            "user" => (AuditKind::User, name.as_str()),
            "client" => (AuditKind::Client, name.as_str()),
            _ => (AuditKind::Key, name.as_str()),
        },
        AccessRefusal::NeedsFactor(name) => (AuditKind::User, name.as_str()),
        AccessRefusal::Csrf => (AuditKind::User, ""),
        AccessRefusal::NoKey
        | AccessRefusal::NoSession
        | AccessRefusal::Ambiguous
        | AccessRefusal::Busy
        | AccessRefusal::Unread(_) => return,
    };
    let object = without_secrets(head.uri.path());
    let refused = RefusedCaller {
        kind,
        who,
        address,
        action: "request",
        object: &object,
        status: refusal.status().as_u16(),
        reason: refusal.reason(),
    };
    access.audit.note_refusal(&refused, now);
}
