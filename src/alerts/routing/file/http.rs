//! Settings of an HTTP client: Alertmanager's `http_config`, for receivers and for Alertmanagers.
//!
//! Must never know: what is sent.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Deserializer, de::Error};

use super::{
    check::FileChecker,
    raw_http::{RawHeader, RawHttp, RawTls},
};
use crate::alerts::routing::receiver::{Http, Secret, Tls};

/// The maximum number of header values.
const HEADERS_MAX: usize = 32;
/// Headers that requests already have, or that define their framing.
const RESERVED: [&str; 9] = [
    "authorization",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "host",
    "proxy-authorization",
    "te",
    "transfer-encoding",
];

/// Reads an `http_config` outside of a notification file; its paths are relative to the working
/// directory.
///
/// # Errors
/// With all faults.
pub fn read_http<'de, D: Deserializer<'de>>(from: D) -> Result<Http, D::Error> {
    let raw = RawHttp::deserialize(from)?;
    let mut checker = FileChecker::new("", Some(Path::new("")));
    let http = checker.http(Some(raw));
    let faults: Vec<_> = checker.into_faults().into_iter().map(|fault| fault.problem).collect();
    if faults.is_empty() { Ok(http) } else { Err(D::Error::custom(faults.join("; "))) }
}

impl FileChecker<'_> {
    pub(super) fn http(&mut self, raw: Option<RawHttp>) -> Http {
        let raw = raw.or_else(|| self.global.http_config.clone()).unwrap_or_default();
        let mut methods = Vec::new();
        let basic = raw.basic_auth.map(|basic| {
            methods.push("basic_auth");
            (basic.username, self.required_secret("password", basic.password, basic.password_file))
        });
        let mut authorization = None;
        if let Some(settings) = raw.authorization {
            methods.push("authorization");
            let secret = self.required_secret(
                "credentials",
                settings.credentials,
                settings.credentials_file,
            );
            authorization = Some((settings.scheme.unwrap_or_else(|| "Bearer".to_owned()), secret));
        }
        if raw.bearer_token.is_some() || raw.bearer_token_file.is_some() {
            methods.push("bearer_token");
            let secret =
                self.required_secret("bearer_token", raw.bearer_token, raw.bearer_token_file);
            authorization = Some(("Bearer".to_owned(), secret));
        }
        if methods.len() > 1 {
            self.fault(format!("http_config: only one of {} can be used", methods.join(", ")));
        }
        if raw.follow_redirects == Some(true) {
            self.fault("follow_redirects: true is not supported: use the final address");
        }
        let headers = self.headers(raw.http_headers);
        let (proxy, tls) = (raw.proxy_url, self.tls(raw.tls_config));
        Http { authorization, basic, headers, proxy, tls }
    }

    pub(super) fn tls(&mut self, raw: RawTls) -> Tls {
        let ca_file = raw.ca_file.map(|file| self.named_file("ca_file", &file));
        Tls { ca_file, insecure_skip_verify: raw.insecure_skip_verify }
    }

    /// Checks the headers; returns each value with its name.
    fn headers(&mut self, raw: BTreeMap<String, RawHeader>) -> Vec<(String, Secret)> {
        let mut headers = Vec::new();
        for (name, header) in raw {
            let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
            let is_reserved = RESERVED.iter().any(|reserved| name.eq_ignore_ascii_case(reserved));
            if name.is_empty() || !name.chars().all(is_token) || is_reserved {
                self.fault(format!("http_headers: {name:?} cannot be set"));
            }
            let texts = header.values.into_iter().chain(header.secrets).map(Secret::Text);
            let mut values: Vec<_> = texts.collect();
            for file in header.files {
                values.push(Secret::File(self.named_file("http_headers: files", &file)));
            }
            if values.is_empty() {
                self.fault(format!("http_headers: {name:?} has none of values, secrets, files"));
            }
            headers.extend(values.into_iter().map(|value| (name.clone(), value)));
        }
        if headers.len() > HEADERS_MAX {
            self.fault(format!("http_headers: more than {HEADERS_MAX} values"));
        }
        headers
    }

    /// Returns a secret that is set either as text or as a file.
    pub(super) fn required_secret(
        &mut self,
        key: &str,
        text: Option<String>,
        file: Option<PathBuf>,
    ) -> Secret {
        match (text.filter(|text| !text.is_empty()), file) {
            (Some(text), None) => Secret::Text(text),
            (None, Some(file)) => Secret::File(self.named_file(&format!("{key}_file"), &file)),
            (Some(_), Some(_)) => {
                self.fault(format!("{key} and {key}_file: set only one of them"));
                Secret::Text(String::new())
            }
            (None, None) => {
                self.fault(format!("{key} or {key}_file is missing"));
                Secret::Text(String::new())
            }
        }
    }
}
