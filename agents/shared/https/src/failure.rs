//! The meaning of a failed request: its reason, and what to do.
//!
//! Must never know: what a client does about it.

use std::io;

use rustls::{AlertDescription, CertificateError, Error as TlsError};
use ureq::{Error, Timeout};

use crate::{pinned::OtherKey, unix_seconds_text};

/// The reason why a request has no response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureReason {
    /// No connection to the server: nothing was sent.
    Connect,
    /// The server or its certificate is not trusted, or does not trust the client: nothing was
    /// sent.
    Tls,
    /// The server did not answer in time.
    Timeout,
    /// The connection ended before the response, or the response was not HTTP.
    Connection,
}

/// The options with which the user of a client can trust a server, in the words of a remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustOptions {
    /// The options of [`HttpsArgs`](crate::HttpsArgs).
    Flags,
    /// The settings `tls_config` of Prometheus.
    TlsConfig,
    /// Only the authorities of the system.
    System,
}

impl TrustOptions {
    fn remedy(self) -> &'static str {
        match self {
            Self::Flags => "trust the authority with --ca-file, or the server's key with --pin",
            Self::TlsConfig => "trust the authority with ca_file of tls_config",
            Self::System => "add the authority to those of the system",
        }
    }
}

/// A failed request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestFailure {
    /// The reason.
    pub reason: FailureReason,
    /// The cause, with a remedy if one is known.
    pub text: String,
}

impl RequestFailure {
    /// Explains an error of the HTTP library.
    pub fn of(error: &Error, options: TrustOptions) -> Self {
        use FailureReason::{Connect, Connection, Timeout as Time, Tls};
        let is = |cause: &io::Error, kind| cause.kind() == kind;
        let (reason, text) = match (tls_error(error), error) {
            (Some(cause), _) => {
                (if is_unsent(cause) { Tls } else { Connection }, explain(cause, options))
            }
            (None, Error::Tls(_)) => (Tls, error.to_string()),
            (None, Error::RequireHttpsOnly(_)) => {
                (Tls, "--pin needs an address that begins with https://".to_owned())
            }
            (None, Error::ConnectionFailed | Error::HostNotFound) => (Connect, error.to_string()),
            (None, Error::Timeout(Timeout::Resolve | Timeout::Connect)) => {
                (Connect, error.to_string())
            }
            (None, Error::Io(cause)) if is(cause, io::ErrorKind::ConnectionRefused) => {
                (Connect, error.to_string())
            }
            (None, Error::Timeout(_)) => (Time, error.to_string()),
            (None, Error::Protocol(_)) => {
                let hint = "if the server speaks TLS, use an address that begins with https://";
                (Connection, format!("{error}; {hint}"))
            }
            (None, _) => (Connection, error.to_string()),
        };
        Self { reason, text }
    }
}

/// Returns the error of TLS in an error of the HTTP library.
fn tls_error(error: &Error) -> Option<&TlsError> {
    if let Error::Rustls(cause) = error {
        return Some(cause);
    }
    let Error::Io(cause) = error else { return None };
    cause.get_ref()?.downcast_ref()
}

/// Returns true for errors that only occur before the first byte of a request is processed.
fn is_unsent(error: &TlsError) -> bool {
    use AlertDescription as Alert;
    if let TlsError::AlertReceived(alert) = error {
        return matches!(
            alert,
            Alert::HandshakeFailure
                | Alert::BadCertificate
                | Alert::UnsupportedCertificate
                | Alert::CertificateRevoked
                | Alert::CertificateExpired
                | Alert::CertificateUnknown
                | Alert::UnknownCA
                | Alert::AccessDenied
                | Alert::DecryptError
                | Alert::ProtocolVersion
                | Alert::InsufficientSecurity
                | Alert::UnrecognisedName
                | Alert::CertificateRequired
        );
    }
    matches!(
        error,
        TlsError::InvalidCertificate(_)
            | TlsError::NoCertificatesPresented
            | TlsError::PeerIncompatible(_)
            | TlsError::General(_)
    )
}

/// Returns the cause in words, with a remedy.
#[expect(clippy::wildcard_enum_match_arm, reason = "all other errors are shown as they are")]
fn explain(error: &TlsError, options: TrustOptions) -> String {
    use AlertDescription as Alert;
    match error {
        TlsError::InvalidCertificate(cause) => explain_certificate(cause, options),
        TlsError::InvalidMessage(_) => "the server does not speak TLS on this port; use an \
             address that begins with http://, or set up TLS on the server"
            .to_owned(),
        TlsError::PeerIncompatible(_)
        | TlsError::AlertReceived(Alert::HandshakeFailure | Alert::ProtocolVersion) => {
            format!("server and client have no version or cipher of TLS in common: {error}")
        }
        TlsError::AlertReceived(Alert::CertificateRequired) => {
            "the server requires a certificate of the client; set the files of certificate and key"
                .to_owned()
        }
        TlsError::AlertReceived(
            alert @ (Alert::BadCertificate
            | Alert::UnsupportedCertificate
            | Alert::CertificateRevoked
            | Alert::CertificateExpired
            | Alert::CertificateUnknown
            | Alert::UnknownCA
            | Alert::AccessDenied),
        ) => format!(
            "the server refuses the certificate of the client ({alert:?}); use one of an \
             authority that the server trusts"
        ),
        TlsError::General(text) if text.contains("No CA certificates") => {
            format!(
                "the system has no trusted authorities; install ca-certificates, or {}",
                options.remedy()
            )
        }
        other => other.to_string(),
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "all other errors are shown as they are")]
fn explain_certificate(error: &CertificateError, options: TrustOptions) -> String {
    let seconds = |time: &rustls::pki_types::UnixTime| unix_seconds_text(time.as_secs());
    match error {
        CertificateError::UnknownIssuer => {
            format!(
                "the server's certificate is not from a trusted authority; {}",
                options.remedy()
            )
        }
        CertificateError::NotValidForNameContext { expected, presented } => {
            let names: Vec<_> = presented.iter().map(|name| plain_name(name)).collect();
            let names = if names.is_empty() { "no name".to_owned() } else { names.join(", ") };
            format!(
                "the server's certificate is for {names}, not for {}; use a name of the \
                 certificate in the address, or renew the certificate with this name",
                expected.to_str()
            )
        }
        CertificateError::ExpiredContext { time, not_after } => format!(
            "the server's certificate expired at {}; renew it, or correct this host's clock \
             ({})",
            seconds(not_after),
            seconds(time)
        ),
        CertificateError::NotValidYetContext { time, not_before } => format!(
            "the server's certificate is valid from {} on; correct this host's clock ({})",
            seconds(not_before),
            seconds(time)
        ),
        CertificateError::InvalidPurposeContext { .. } | CertificateError::InvalidPurpose => {
            "the server's certificate is not a certificate for servers".to_owned()
        }
        CertificateError::Other(cause) => match cause.0.downcast_ref::<OtherKey>() {
            Some(key) => format!(
                "{key}, which is not among those of --pin; if the key was replaced on purpose, \
                 add its pin"
            ),
            None if format!("{cause:?}").contains("CaUsedAsEndEntity") => {
                "the server's certificate is that of an authority; let the authority sign a \
                 certificate for the server"
                    .to_owned()
            }
            None => format!("the server's certificate is not valid: {cause}"),
        },
        other => format!("the server's certificate is not valid: {other}"),
    }
}

/// Returns the name in a debug text such as `DnsName("localhost")`.
fn plain_name(name: &str) -> &str {
    let inside = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    inside.unwrap_or(name).trim_matches('"')
}
