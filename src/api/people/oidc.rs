//! `GET /login/oidc` and `GET /login/oidc/callback`, the start and the end of a login at a
//! provider, and `GET /api/v1/access/oidc` for the page.
//!
//! Browsers open the first two as documents, and a redirect leads to the provider's own address or
//! to the page. Must never know: the protocol.

use actix_web::{
    HttpRequest, HttpResponse,
    http::header::{self, HeaderValue},
    web,
};
use serde::Serialize;

use super::oidc_problem::LoginProblem;
use crate::{
    access::{Person, Roles},
    api::caller::{
        AccessParts, AskFault, Outcome, address, login_cookie, set_cookie, set_login_cookie,
    },
    kept::{LoginOutcome, NewSession, PeopleFault},
    oidc::{Provider, ProviderFault},
};

/// The maximum size of a provider's code in bytes.
const CODE_BYTES_MAX: usize = 4096;

/// The answer to the page.
#[derive(Debug, Serialize)]
struct ProviderAnswer {
    /// The name that the login shows; `None` without a provider.
    name: Option<String>,
}

/// The parameters with which the provider sends a browser back.
#[derive(Debug, Default)]
struct Returned {
    code: Option<String>,
    state: Option<String>,
    error: Option<String>,
    issuer: Option<String>,
}

impl Returned {
    /// Reads the parameters; `None` when one of them occurs twice.
    fn read(query: &str) -> Option<Self> {
        let pairs = web::Query::<Vec<(String, String)>>::from_query(query).ok()?.into_inner();
        let mut returned = Self::default();
        for (name, value) in pairs {
            let field = match &*name {
                "code" => &mut returned.code,
                "state" => &mut returned.state,
                "error" => &mut returned.error,
                "iss" => &mut returned.issuer,
                _ => continue,
            };
            if field.replace(value).is_some() {
                return None;
            }
        }
        Some(returned)
    }
}

/// Returns true when a text may be a provider's code. Other texts are not sent to the provider: a
/// firewall in front of the provider could refuse them, which would look like an outage of the
/// provider.
fn is_code(text: &str) -> bool {
    let is_usual = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=|!*:,$@".contains(&byte);
    text.len() <= CODE_BYTES_MAX && text.bytes().all(is_usual)
}

pub(super) async fn provider(parts: web::Data<AccessParts>) -> HttpResponse {
    let provider = used_provider(&parts);
    let name = provider.map(|provider| provider.settings().name.clone());
    HttpResponse::Ok().json(ProviderAnswer { name })
}

fn used_provider(parts: &AccessParts) -> Option<Provider> {
    parts.provider_logins.provider().filter(|_| parts.is_on && parts.unread().is_none())
}

pub(super) async fn begin(request: HttpRequest, parts: web::Data<AccessParts>) -> HttpResponse {
    let Some(provider) = used_provider(&parts) else { return LoginProblem::Off.response("") };
    if is_of_other_site(&request) {
        return redirect(&format!("{}/login", provider.settings().page), []);
    }
    let begun = begin_at(&request, &parts, &provider).await;
    begun.unwrap_or_else(|problem| refuse(&request, &parts, &provider, (&problem, "")))
}

/// Returns true when a page of another site sent the browser here. The person then sees the login
/// first, so that no other site begins a session without the person.
fn is_of_other_site(request: &HttpRequest) -> bool {
    let site = request.headers().get("sec-fetch-site");
    site.is_some_and(|site| ![&b"same-origin"[..], b"none"].contains(&site.as_bytes()))
}

async fn begin_at(
    request: &HttpRequest,
    parts: &AccessParts,
    provider: &Provider,
) -> Result<HttpResponse, LoginProblem> {
    let now = parts.clock.now();
    let login = parts.provider_logins.secret.begin(now).map_err(|_| LoginProblem::Failed)?;
    let cookie = set_login_cookie(request, &login.cookie);
    let asked = provider.clone();
    let address = parts.provider_logins.ask(move || asked.login_address(&login, now)).await;
    let address = address.map_err(|fault| problem_of(&fault))?;
    Ok(redirect(&address, [cookie]))
}

pub(super) async fn finish(request: HttpRequest, parts: web::Data<AccessParts>) -> HttpResponse {
    let Some(provider) = used_provider(&parts) else { return LoginProblem::Off.response("") };
    let mut name = String::new();
    let session = finish_at(&request, &parts, &provider, &mut name).await;
    let done = match session {
        Ok(session) => {
            count(&parts, "right");
            parts.metrics.people.sessions.set(parts.people.session_count() as i64);
            let page = format!("{}/", provider.settings().page);
            redirect(&page, [set_cookie(&request, session.token.reveal())])
        }
        Err(problem) => refuse(&request, &parts, &provider, (&problem, &name)),
    };
    without_login_cookie(&request, done)
}

/// Ends a login; `name` becomes the name of the person's user as soon as it is known.
async fn finish_at(
    request: &HttpRequest,
    parts: &web::Data<AccessParts>,
    provider: &Provider,
    name: &mut String,
) -> Result<NewSession, LoginProblem> {
    let now = parts.clock.now();
    let returned = Returned::read(request.query_string()).ok_or(LoginProblem::State)?;
    let cookie = login_cookie(request).ok_or(LoginProblem::State)?;
    let state = returned.state.unwrap_or_default();
    let login = parts.provider_logins.secret.resume(cookie, &state, now);
    let login = login.ok_or(LoginProblem::State)?;
    let is_other = |issuer: &String| *issuer != provider.settings().issuer;
    if returned.issuer.as_ref().is_some_and(is_other) {
        return Err(LoginProblem::State);
    }
    if returned.error.is_some() {
        return Err(LoginProblem::Denied);
    }
    let code = returned.code.filter(|code| is_code(code)).ok_or(LoginProblem::State)?;
    let begun = parts.logins.begin(request, &login.state);
    let attempt = begun.map_err(|wait_ms| LoginProblem::Delayed { wait_ms })?;
    let asked = provider.clone();
    let person = parts.provider_logins.ask(move || asked.person(code, &login, now)).await;
    let is_wrong = matches!(&person, Err(AskFault::Provider(ProviderFault::Refused(_))));
    parts.logins.note(&attempt, if is_wrong { Outcome::Wrong } else { Outcome::Neither });
    if let Err(AskFault::Provider(ProviderFault::Refused(cause))) = &person
        && attempt.is_first
    {
        let (address, cause) = (address(request), cause.chars().take(400).collect::<String>());
        tracing::warn!(%address, cause, "refused a login at the provider");
    }
    let person = person.map_err(|fault| problem_of(&fault))?;
    *name = person.user_name();
    match provider.settings().rules.roles_of(&person) {
        Some(roles) => begin_session(request, parts, provider, (person, roles)).await,
        None => Err(end_sessions(parts, provider, person).await),
    }
}

/// Ends the sessions of a person without a role. Returns the reason of the refusal.
async fn end_sessions(
    parts: &web::Data<AccessParts>,
    provider: &Provider,
    person: Person,
) -> LoginProblem {
    let (shared, provider) = (parts.clone(), provider.clone());
    let ended = web::block(move || {
        let now = shared.clock.now();
        shared.people.end_sessions_of_person(&person, &provider.settings().rules, now)
    });
    match ended.await {
        Ok(Ok(())) => LoginProblem::NoRole,
        Ok(Err(fault)) => {
            tracing::error!(cause = %fault, "cannot end the sessions of a provider's user");
            LoginProblem::Failed
        }
        Err(_) => LoginProblem::Failed,
    }
}

async fn begin_session(
    request: &HttpRequest,
    parts: &web::Data<AccessParts>,
    provider: &Provider,
    (person, roles): (Person, Roles),
) -> Result<NewSession, LoginProblem> {
    let (shared, provider) = (parts.clone(), provider.clone());
    let (replaced, from) = (parts.session(request), Some(address(request)));
    let begun = web::block(move || {
        let now = shared.clock.now();
        let rules = &provider.settings().rules;
        let session = shared.people.log_in_person(&person, roles, rules, now)?;
        // The new cookie replaces the previous one in the browser, so the previous session ends.
        if let Some(replaced) = replaced {
            shared.people.log_out(&replaced)?;
        }
        let (issuer, name) = (rules.issuer(), person.user_name());
        shared.audit.note_login_at(issuer, &name, from, LoginOutcome::Done, now);
        Ok(session)
    });
    begun.await.map_err(|_| LoginProblem::Failed)?.map_err(|fault: PeopleFault| {
        if matches!(fault, PeopleFault::Disabled) {
            return LoginProblem::Disabled;
        }
        tracing::error!(cause = %fault, "cannot begin the session of a provider's user");
        LoginProblem::Failed
    })
}

fn problem_of(fault: &AskFault) -> LoginProblem {
    match fault {
        AskFault::Busy => LoginProblem::Busy,
        AskFault::Failed => LoginProblem::Failed,
        AskFault::Provider(ProviderFault::Unavailable(_)) => LoginProblem::Unavailable,
        AskFault::Provider(ProviderFault::Client(_)) => LoginProblem::Client,
        AskFault::Provider(ProviderFault::Refused(_)) => LoginProblem::Token,
    }
}

/// Counts a failed login, notes it in the audit when the person was refused, and returns the
/// response.
fn refuse(
    request: &HttpRequest,
    parts: &AccessParts,
    provider: &Provider,
    (problem, name): (&LoginProblem, &str),
) -> HttpResponse {
    count(parts, problem.outcome());
    let settings = provider.settings();
    if problem.is_refusal() {
        let (reason, status) = (problem.outcome(), problem.status().as_u16());
        let refused = LoginOutcome::Refused { reason, status };
        let (from, now) = (Some(address(request)), parts.clock.now());
        parts.audit.note_login_at(settings.rules.issuer(), name, from, refused, now);
    }
    problem.response(&settings.name)
}

fn count(parts: &AccessParts, outcome: &str) {
    parts.metrics.people.provider_logins.with_label_values(&[outcome]).inc();
}

/// Redirects a browser to an address that does not come from a request.
fn redirect<const N: usize>(address: &str, cookies: [String; N]) -> HttpResponse {
    let mut response = HttpResponse::SeeOther();
    response.insert_header((header::LOCATION, address.to_owned()));
    for cookie in cookies {
        response.append_header((header::SET_COOKIE, cookie));
    }
    response.finish()
}

/// Removes the cookie of a login that has ended.
fn without_login_cookie(request: &HttpRequest, mut response: HttpResponse) -> HttpResponse {
    if let Ok(cookie) = HeaderValue::from_str(&set_login_cookie(request, "")) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_characters_of_tokens() {
        assert!(is_code("SplxlOBeZQQYbYS6WxSbIA") && is_code("4/0Ab-c_d.~|x"));
        let long = "a".repeat(CODE_BYTES_MAX + 1);
        assert!([&long, "<script>", "a b", "a\n", "a\u{e4}"].iter().all(|text| !is_code(text)));
    }

    #[test]
    fn parameters_that_are_there_twice_are_no_answer() {
        let read = |query: &str| {
            let Returned { code, state, error, issuer } = Returned::read(query)?;
            Some([code, state, error, issuer].map(Option::unwrap_or_default).join(" "))
        };
        assert_eq!(read("state=a%20b&code=c&iss=d&session_state=e"), Some("c a b  d".to_owned()));
        assert_eq!(read("error=access_denied&state=a"), Some(" a access_denied ".to_owned()));
        assert_eq!(read(""), Some("   ".to_owned()));
        for query in ["code=a&code=b&state=c", "code=a&state=c&state=c", "iss=a&iss=a"] {
            assert_eq!(read(query), None, "{query}");
        }
    }
}
