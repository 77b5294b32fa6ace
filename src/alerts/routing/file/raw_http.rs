//! The keys of Alertmanager's `http_config`.
//!
//! Must never know: which combinations of the keys can be used.

use std::{collections::BTreeMap, path::PathBuf};

use serde::Deserialize;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawHttp {
    pub(super) basic_auth: Option<RawBasic>,
    pub(super) authorization: Option<RawAuthorization>,
    pub(super) bearer_token: Option<String>,
    pub(super) bearer_token_file: Option<PathBuf>,
    pub(super) proxy_url: Option<String>,
    pub(super) follow_redirects: Option<bool>,
    #[serde(default)]
    pub(super) tls_config: RawTls,
    #[serde(default)]
    pub(super) http_headers: BTreeMap<String, RawHeader>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawBasic {
    pub(super) username: String,
    pub(super) password: Option<String>,
    pub(super) password_file: Option<PathBuf>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawAuthorization {
    #[serde(rename = "type")]
    pub(super) scheme: Option<String>,
    pub(super) credentials: Option<String>,
    pub(super) credentials_file: Option<PathBuf>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawTls {
    pub(super) ca_file: Option<PathBuf>,
    #[serde(default)]
    pub(super) insecure_skip_verify: bool,
}

/// The values of a header, with Alertmanager's keys.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawHeader {
    #[serde(default)]
    pub(super) values: Vec<String>,
    #[serde(default)]
    pub(super) secrets: Vec<String>,
    #[serde(default)]
    pub(super) files: Vec<PathBuf>,
}
