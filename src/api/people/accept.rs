//! `POST /api/v1/access/accept`: whoever has the one-time link of a new data directory becomes its
//! first administrator.

use actix_web::{HttpRequest, HttpResponse, http::StatusCode, web};
use serde::Deserialize;

use super::{either, failed, invalid, login::unavailable, me::begun, parsed, refusal};
use crate::{
    access::{Purpose, check_password, check_user_name, user_name},
    api::{
        body::must_be_json,
        caller::{AccessParts, note_caller},
        refusal::Refusal,
    },
    kept::{KeyFault, NewSession, ObjectFault, PeopleFault},
    model::AuditKind,
};

/// The maximum size of a request.
const BYTES_MAX: usize = 4096;

/// The body of a request.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AcceptBody {
    code: String,
    user: String,
    password: String,
}

/// The reason why the request created no administrator.
enum AcceptFault {
    Code(KeyFault),
    Person(PeopleFault),
}

pub(super) async fn accept(
    request: HttpRequest,
    payload: web::Payload,
    parts: web::Data<AccessParts>,
) -> Result<HttpResponse, Refusal> {
    must_be_json(&request)?;
    if let Some(refused) = unavailable(&parts) {
        return Ok(refused);
    }
    let body = parts.bodies.receive_query(&request, payload, BYTES_MAX).await?;
    let body = match parsed::<AcceptBody>(&body) {
        Ok(body) => body,
        Err(fault) => return Ok(invalid(fault)),
    };
    Ok(either(enter(&request, &parts, body).await))
}

async fn enter(
    request: &HttpRequest,
    parts: &web::Data<AccessParts>,
    body: AcceptBody,
) -> Result<HttpResponse, HttpResponse> {
    let AcceptBody { code, user, password } = body;
    let name = user_name(&user);
    check_user_name(&name)
        .and_then(|()| check_password(&name, &password))
        .map_err(|message| invalid(ObjectFault::Invalid(message)))?;
    let turn = parts.logins.turn().await?;
    let (shared, new_name) = (parts.clone(), name.clone());
    let made = web::block(move || {
        let session = create(&shared, &code, &new_name, &password);
        drop(turn);
        session
    });
    match made.await.map_err(|cause| failed(cause.to_string()))? {
        Ok(session) => {
            note_caller(request, AuditKind::User, &name);
            Ok(begun(request, parts, &session, StatusCode::CREATED))
        }
        Err(AcceptFault::Code(KeyFault::WrongCode)) => Err(parts.refuse_code(request)),
        Err(AcceptFault::Code(KeyFault::Object(fault))) => Err(invalid(fault)),
        Err(AcceptFault::Code(cause)) => Err(failed(cause.to_string())),
        Err(AcceptFault::Person(fault)) => Err(refusal(&fault)),
    }
}

fn create(
    parts: &AccessParts,
    code: &str,
    name: &str,
    password: &str,
) -> Result<NewSession, AcceptFault> {
    let now = parts.clock.now();
    // The code stays valid when the name is taken.
    let accepts = |_: &_| {
        if parts.people.has_user(name) {
            return Err(ObjectFault::Invalid(format!("user: a user {name:?} exists")));
        }
        Ok(())
    };
    let redeemed = parts.codes.redeem(code, Purpose::FirstAdmin, now, accepts);
    redeemed.map_err(AcceptFault::Code)?;
    parts.people.create_administrator(name, password, now).map_err(AcceptFault::Person)
}
