//! A browser that fills in the forms of a provider, and the provider.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
};

use serde_json::json;

pub(super) const SECRET: &str = "a secret of tests & of nothing else";

/// A provider that runs until this value is dropped.
pub(super) struct ProviderProcess {
    child: Child,
    /// The open pipe of the process's output: without a reader, the process would end when it
    /// prints a notice.
    _output: BufReader<ChildStdout>,
}

/// The properties of a provider.
#[derive(Clone)]
pub(super) struct ProviderOptions {
    pub(super) port: u16,
    /// The address to which the provider sends browsers back.
    pub(super) redirect: String,
    /// The id of its key.
    pub(super) kid: &'static str,
    pub(super) alg: &'static str,
    /// False when only the user info has the groups.
    pub(super) id_token_has_claims: bool,
    /// The time until a token expires.
    pub(super) id_token_seconds: i64,
}

impl ProviderOptions {
    /// Starts a provider with a new key, and waits until it listens.
    pub(super) fn start(&self) -> ProviderProcess {
        let script =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/clients/oidc_provider.js");
        let options = json!({
            "port": self.port,
            "redirect": self.redirect,
            "secret": SECRET,
            "kid": self.kid,
            "alg": self.alg,
            "idTokenHasClaims": self.id_token_has_claims,
            "idTokenSeconds": self.id_token_seconds,
        });
        let mut child = Command::new("node")
            .arg(script)
            .arg(options.to_string())
            .env("NODE_PATH", std::env::var("GRANARY_TEST_NODE_PATH").unwrap_or_default())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let provider = ProviderProcess { child, _output: output };
        assert_eq!(line, "ready\n", "the provider did not start");
        provider
    }
}

impl Drop for ProviderProcess {
    fn drop(&mut self) {
        // The process may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A response.
pub(super) struct Page {
    pub(super) status: u16,
    /// The address of a redirect.
    pub(super) location: Option<String>,
    pub(super) set_cookies: Vec<String>,
    pub(super) text: String,
}

/// A browser with its cookies, which it sends to all ports of this machine.
pub(super) struct Browser {
    agent: ureq::Agent,
    pub(super) cookies: BTreeMap<String, String>,
}

impl Browser {
    pub(super) fn new() -> Self {
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .build()
            .into();
        Self { agent, cookies: BTreeMap::new() }
    }

    /// Opens an address to which another site sent the browser, without following redirects.
    pub(super) fn get(&mut self, url: &str) -> Page {
        self.open(url, "cross-site")
    }

    /// Opens an address with the headers of a navigation, without following redirects.
    pub(super) fn open(&mut self, url: &str, site: &str) -> Page {
        let request = self.agent.get(url).header("Sec-Fetch-Site", site);
        let request = request.header("Sec-Fetch-Mode", "navigate").header("Cookie", self.cookie());
        let response = request.call().unwrap();
        self.page(response, url)
    }

    fn post(&mut self, url: &str, form: &[(&str, &str)]) -> Page {
        let request = self.agent.post(url).header("Cookie", self.cookie());
        let response = request.send_form(form.iter().copied()).unwrap();
        self.page(response, url)
    }

    fn cookie(&self) -> String {
        let pairs = self.cookies.iter().map(|(name, value)| format!("{name}={value}"));
        pairs.collect::<Vec<_>>().join("; ")
    }

    fn page(&mut self, mut response: ureq::http::Response<ureq::Body>, url: &str) -> Page {
        let headers = response.headers();
        let text = |value: &ureq::http::HeaderValue| value.to_str().unwrap().to_owned();
        let set_cookies: Vec<_> = headers.get_all("set-cookie").iter().map(text).collect();
        let location = headers.get("location").map(text).map(|location| {
            let origin: Vec<_> = url.splitn(4, '/').take(3).collect();
            let is_path = location.starts_with('/') && !location.starts_with("//");
            if is_path { format!("{}{location}", origin.join("/")) } else { location }
        });
        for cookie in &set_cookies {
            let (name, value) = cookie.split(';').next().unwrap().split_once('=').unwrap();
            if value.is_empty() {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        let status = response.status().as_u16();
        Page { status, location, set_cookies, text: response.body_mut().read_to_string().unwrap() }
    }

    /// Fills in the forms of the provider at an address, until it sends the browser back; returns
    /// the address to which it sends the browser.
    pub(super) fn fill_forms(&mut self, url: &str, login: &str) -> String {
        let callback = "/login/oidc/callback?";
        let mut page = self.get(url);
        for _ in 0..20 {
            if let Some(location) = &page.location {
                if location.contains(callback) {
                    return location.clone();
                }
                let next = location.clone();
                page = self.get(&next);
                continue;
            }
            assert_eq!(page.status, 200, "{}", page.text);
            let after = |mark: &str| {
                let (_, rest) = page.text.split_once(mark).unwrap();
                rest.split('"').next().unwrap().to_owned()
            };
            let (action, prompt) = (after("action=\""), after("name=\"prompt\" value=\""));
            let form = [("prompt", &*prompt), ("login", login), ("password", "any")];
            page = self.post(&action, &form);
        }
        panic!("the provider does not end the login");
    }
}
