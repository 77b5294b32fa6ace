//! The credentials of requests: user and password, the header `Authorization`, and TLS.

use std::path::PathBuf;

use serde::Deserialize;

/// The credentials of requests. Their file names are relative to the settings.
pub(crate) struct Credentials<'a> {
    pub(crate) basic_auth: &'a mut Option<BasicAuth>,
    pub(crate) authorization: &'a mut Option<Authorization>,
    pub(crate) tls_config: &'a mut Tls,
}

/// User name and password.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct BasicAuth {
    pub(crate) username: String,
    pub(crate) password: String,
    pub(crate) password_file: Option<PathBuf>,
}

/// The value of the header `Authorization`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Authorization {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) credentials: String,
    pub(crate) credentials_file: Option<PathBuf>,
}

impl Default for Authorization {
    fn default() -> Self {
        let (credentials, credentials_file) = (String::new(), None);
        Self { kind: "Bearer".to_owned(), credentials, credentials_file }
    }
}

/// TLS settings: trusted authorities, client certificate and key.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Tls {
    pub(crate) ca_file: Option<PathBuf>,
    pub(crate) cert_file: Option<PathBuf>,
    pub(crate) key_file: Option<PathBuf>,
    pub(crate) insecure_skip_verify: bool,
}
