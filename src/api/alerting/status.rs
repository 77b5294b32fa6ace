//! `GET /api/v2/status` and `/api/v2/receivers`: what Alertmanager's clients ask to know what they
//! talk to.

use actix_web::{HttpResponse, web};
use serde_json::json;

use super::{AlertingParts, time};

/// There is one daemon, and it has no configuration of Alertmanager's.
pub(super) async fn status(parts: web::Data<AlertingParts>) -> HttpResponse {
    HttpResponse::Ok().json(json!({
        "cluster": { "status": "disabled", "peers": [] },
        "config": { "original": "" },
        "uptime": time(parts.started),
        "versionInfo": {
            "version": concat!("granary-", env!("CARGO_PKG_VERSION")),
            "revision": "",
            "branch": "",
            "buildUser": "",
            "buildDate": "",
            "goVersion": "",
        },
    }))
}

/// There is none yet that has a name.
pub(super) async fn receivers() -> HttpResponse {
    HttpResponse::Ok().json(json!([]))
}
