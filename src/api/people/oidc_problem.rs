//! The HTML pages that a browser shows when a login at a provider fails.
//!
//! Must never know: why a login fails.

use actix_web::{
    HttpResponse,
    http::{StatusCode, header},
};

/// The reason why a login at a provider fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LoginProblem {
    /// The settings have no provider.
    Off,
    /// The provider does not answer, or its answer is invalid.
    Unavailable,
    /// The provider refuses the daemon.
    Client,
    /// Many logins wait for the provider.
    Busy,
    /// The address must wait after wrong logins.
    Delayed {
        /// The time to wait.
        wait_ms: i64,
    },
    /// The browser did not begin this login, or began it too long ago.
    State,
    /// The provider, or the person there, ended the login.
    Denied,
    /// The provider refuses the code, or its token is not valid.
    Token,
    /// No group of the person has a role.
    NoRole,
    /// An administrator disabled the person's user.
    Disabled,
    /// The daemon failed.
    Failed,
}

impl LoginProblem {
    /// Returns the value of the label `outcome`, and of the reason in the audit.
    pub(super) fn outcome(&self) -> &'static str {
        match self {
            Self::Off | Self::Failed => "failed",
            Self::Unavailable => "unavailable",
            Self::Client => "client",
            Self::Busy => "busy",
            Self::Delayed { .. } => "delayed",
            Self::State => "state",
            Self::Denied => "denied",
            Self::Token => "token",
            Self::NoRole => "no_role",
            Self::Disabled => "disabled",
        }
    }

    /// Returns true when a person was refused, which the audit records.
    pub(super) fn is_refusal(&self) -> bool {
        matches!(self, Self::State | Self::Denied | Self::Token | Self::NoRole | Self::Disabled)
    }

    /// Returns the status of the response.
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::Off => StatusCode::NOT_FOUND,
            Self::Unavailable | Self::Client | Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Self::Delayed { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::State | Self::Denied | Self::Token => StatusCode::UNAUTHORIZED,
            Self::NoRole | Self::Disabled => StatusCode::FORBIDDEN,
            Self::Failed => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Returns the texts of the document, which name the provider.
    fn texts(&self, name: &str) -> (&'static str, String) {
        let refused = "Login refused";
        match self {
            Self::Off => ("No provider", "This daemon has no provider for logins.".to_owned()),
            Self::Unavailable => (
                "Provider unavailable",
                format!(
                    "{name} does not answer as it should. Try again in a minute, or log in with a \
                     password."
                ),
            ),
            Self::Client => (
                "Provider unavailable",
                format!(
                    "{name} does not accept this Granary. An administrator finds the reason in \
                     Granary's log."
                ),
            ),
            Self::Busy => (
                "Provider busy",
                format!("Many people log in with {name} at this moment. Try again in a minute."),
            ),
            Self::Delayed { .. } => (
                "Login delayed",
                "Many wrong logins came from this address. Try again in a minute.".to_owned(),
            ),
            Self::State => (
                "Login expired",
                "This login took more than ten minutes, has ended before, or began in another \
                 browser. Begin it again."
                    .to_owned(),
            ),
            Self::Denied => (refused, format!("{name} ended the login.")),
            Self::Token => (refused, format!("{name} did not confirm the login. Begin it again.")),
            Self::NoRole => (
                refused,
                format!(
                    "None of your groups at {name} has a role here. Ask an administrator of this \
                     Granary."
                ),
            ),
            Self::Disabled => {
                (refused, "An administrator of this Granary disabled your user.".to_owned())
            }
            Self::Failed => (
                "Login failed",
                "Granary could not begin a session. An administrator finds the reason in its log."
                    .to_owned(),
            ),
        }
    }

    /// Returns the response with the page.
    pub(super) fn response(&self, name: &str) -> HttpResponse {
        let (title, text) = self.texts(name);
        let mut response = HttpResponse::build(self.status());
        if let Self::Delayed { wait_ms } = self {
            response.insert_header((header::RETRY_AFTER, (wait_ms + 999) / 1000));
        }
        response
            .insert_header((header::CONTENT_TYPE, "text/html; charset=utf-8"))
            .insert_header((header::REFERRER_POLICY, "no-referrer"))
            .body(format!(
                "<!doctype html>\n<html lang=\"en\">\n  <head>\n    <meta charset=\"utf-8\">\n    \
                 <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n    \
                 <meta name=\"color-scheme\" content=\"dark light\">\n    \
                 <title>{title} · Granary</title>\n  </head>\n  <body>\n    <h1>{title}</h1>\n    \
                 <p>{}</p>\n    <p><a href=\"/login\">Log in</a></p>\n  </body>\n</html>\n",
                escaped(&text)
            ))
    }
}

/// Returns a text as HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use actix_web::body::MessageBody;

    use super::*;

    #[test]
    fn the_name_of_a_provider_is_text_in_the_document() {
        let response = LoginProblem::NoRole.response("<b>A&B</b>");
        assert_eq!(response.status(), StatusCode::FORBIDDEN);
        let body = response.into_body().try_into_bytes().unwrap();
        let body = String::from_utf8(body.to_vec()).unwrap();
        assert!(body.contains("None of your groups at &lt;b&gt;A&amp;B&lt;/b&gt;"), "{body}");
        assert!(!body.contains("<b>") && body.contains("href=\"/login\""), "{body}");
    }
}
