//! `GET /api/v1/access/me`, which is also the answer when a session begins.

use actix_web::{
    HttpRequest, HttpResponse,
    http::{StatusCode, header},
    web,
};
use serde::Serialize;

use crate::{
    access::{Caller, Roles, Scope, Scopes, UserRecord},
    api::caller::{AccessParts, caller, csrf_text, project, set_cookie},
    kept::NewSession,
    model::ProjectName,
};

/// The caller of a request.
#[derive(Debug, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts of an answer")]
pub(super) struct MeAnswer {
    /// True when each request needs credentials.
    access: bool,
    /// `user`, `key`, or `none` without access control.
    kind: &'static str,
    name: String,
    /// The name that the provider sent; empty for other callers.
    display_name: String,
    /// The roles of a user by project.
    roles: Roles,
    /// The scopes in the project of the request.
    scopes: Scopes,
    /// The project of the request.
    project: ProjectName,
    /// The projects among which the caller may choose.
    projects: Vec<ProjectName>,
    /// True for a user with a second factor.
    totp: bool,
    /// True when the user must set up a second factor before any other request.
    totp_required: bool,
    /// True for a user with a password.
    password: bool,
    /// The text that requests for changes must repeat when they are sent with the session's cookie.
    csrf: Option<String>,
    /// The latest end of the session in Unix milliseconds.
    expires: Option<i64>,
}

/// Returns the answer about a caller; `csrf` is the text for changes with the session's cookie.
pub(super) fn answer_me(
    parts: &AccessParts,
    (caller, project): (Option<&Caller>, ProjectName),
    csrf: Option<String>,
) -> MeAnswer {
    let user = match caller {
        Some(Caller::User(user)) => Some(user),
        Some(Caller::Key(_) | Caller::Client(_)) | None => None,
    };
    let record = user.map(|user| &user.user.record);
    let all = || Scopes::of(&[Scope::Admin, Scope::Operate]);
    MeAnswer {
        access: parts.is_on,
        kind: caller.map_or("none", Caller::kind),
        name: caller.map_or(String::new(), |caller| caller.name().to_owned()),
        display_name: record.map_or(String::new(), |record| record.display_name().to_owned()),
        roles: record.map(|record| record.roles.clone()).unwrap_or_default(),
        scopes: caller.map_or_else(all, Caller::scopes),
        project,
        projects: caller.map(|caller| parts.projects_of(caller)).unwrap_or_default(),
        totp: record.is_some_and(UserRecord::requires_code),
        totp_required: user.is_some_and(|user| parts.lacks_factor(user)),
        password: record.is_some_and(|record| record.password.is_some()),
        csrf,
        expires: user.map(|user| user.session.expires()),
    }
}

pub(super) async fn me(request: HttpRequest, parts: web::Data<AccessParts>) -> HttpResponse {
    let caller = caller(&request);
    let csrf = caller.as_ref().and_then(|caller| csrf_text(&request, caller));
    let project = project(&request);
    HttpResponse::Ok().json(answer_me(&parts, (caller.as_ref(), project), csrf))
}

/// Answers with the caller of a new session, and sets its cookie.
pub(super) fn begun(
    request: &HttpRequest,
    parts: &AccessParts,
    session: &NewSession,
    status: StatusCode,
) -> HttpResponse {
    parts.metrics.people.sessions.set(parts.people.session_count() as i64);
    let (caller, project) = parts.at_home(session.caller.clone());
    let me = answer_me(parts, (Some(&caller), project), Some(session.csrf().to_string()));
    let cookie = set_cookie(request, session.token.reveal());
    HttpResponse::build(status).insert_header((header::SET_COOKIE, cookie)).json(me)
}
