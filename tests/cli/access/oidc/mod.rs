//! Logins at a real provider: the npm package oidc-provider with its own forms.

mod browser;

use std::{fs, process::Command};

use serde_json::{Value, json};

use self::browser::{Browser, Page, ProviderOptions, ProviderProcess, SECRET};
use super::{Guarded, first_key, people::PASSWORD};
use crate::{
    daemon::{Daemon, client},
    hook::Hook,
    peers::wait_until,
};

const ROLES: &str = "roles = { dev = { default = 'viewer' }, ops = { web = 'editor' } }";

/// A daemon whose settings name a provider; the provider may or may not run.
struct WithProvider {
    guarded: Guarded,
    options: ProviderOptions,
}

impl WithProvider {
    fn start() -> (Self, ProviderProcess) {
        let this = Self::start_alone();
        let process = this.options.start();
        (this, process)
    }

    fn start_alone() -> Self {
        let port = Hook::free_address().port();
        let mut daemon = Daemon::new(tempfile::tempdir().unwrap(), " ", "http", client());
        let secret = daemon.dir.path().join("secret");
        fs::write(&secret, format!("{SECRET}\n")).unwrap();
        let settings = format!(
            "server.external_url = '{}'\n[security]\naccess = true\n[security.projects.web]\n\
             [security.oidc]\nname = 'Example <ID>'\nissuer = 'http://127.0.0.1:{port}'\n\
             client_id = 'granary'\nclient_secret_file = '{}'\n{ROLES}\n",
            daemon.url,
            secret.display()
        );
        fs::write(daemon.dir.path().join("granary.toml"), settings).unwrap();
        daemon.restart();
        let options = ProviderOptions {
            port,
            redirect: format!("{}/login/oidc/callback", daemon.url),
            kid: "first",
            alg: "RS256",
            id_token_has_claims: true,
            id_token_seconds: 600,
        };
        let admin = first_key(&daemon).unwrap();
        Self { guarded: Guarded { daemon, admin }, options }
    }

    fn address(&self, path: &str) -> String {
        format!("{}{path}", self.guarded.daemon.url)
    }

    /// Begins a login; returns the address at the provider.
    fn begin(&self, browser: &mut Browser) -> String {
        let page = browser.open(&self.address("/login/oidc"), "same-origin");
        assert_eq!(page.status, 303, "{}", page.text);
        page.location.unwrap()
    }

    /// Logs in at the provider; returns the address to which it sends the browser back.
    fn returned(&self, browser: &mut Browser, login: &str) -> String {
        let address = self.begin(browser);
        browser.fill_forms(&address, login)
    }

    fn log_in(&self, browser: &mut Browser, login: &str) -> Page {
        let address = self.returned(browser, login);
        browser.get(&address)
    }

    /// Sends a request of the page with the browser's session.
    fn send(
        &self,
        browser: &Browser,
        (method, path): (&str, &str),
        project: &str,
        body: &str,
    ) -> (u16, Value) {
        let cookie = format!("granary={}", browser.cookies["granary"]);
        let headers = [("Cookie", &*cookie), ("X-Scope-OrgID", project)];
        let (status, me) = self.guarded.send_with("GET", "/api/v1/access/me", &headers, "");
        if status != 200 || path.ends_with("/me") {
            return (status, me);
        }
        let csrf = me["csrf"].as_str().unwrap();
        let headers = [&headers[..], &[("X-Granary-CSRF", csrf)]].concat();
        self.guarded.send_with(method, path, &headers, body)
    }

    fn me(&self, browser: &Browser) -> (u16, Value) {
        self.send(browser, ("GET", "/api/v1/access/me"), "default", "")
    }

    fn audit(&self) -> Vec<Value> {
        let (_, answer) = self.guarded.send("GET", "/api/v1/admin/audit", &self.guarded.admin, "");
        answer["records"].as_array().unwrap().clone()
    }

    fn count(&self, outcome: &str) -> u64 {
        let (_, metrics) = self.guarded.send("GET", "/metrics", &self.guarded.admin, "");
        let name = format!("granary_provider_logins_total{{outcome=\"{outcome}\"}} ");
        let line = metrics.as_str().unwrap().lines().find_map(|line| line.strip_prefix(&name));
        line.unwrap().parse().unwrap()
    }

    /// Replaces a text of the settings, and reloads them.
    fn reload(&self, from: &str, to: &str) {
        let path = self.guarded.daemon.dir.path().join("granary.toml");
        let settings = fs::read_to_string(&path).unwrap();
        let changed = settings.replace(from, to);
        assert_ne!(settings, changed);
        fs::write(path, changed).unwrap();
        let before = self.guarded.daemon.log().matches("reloaded the settings").count();
        let pid = self.guarded.daemon.pid().to_string();
        assert!(Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
        wait_until("the daemon reloads", || {
            self.guarded.daemon.log().matches("reloaded the settings").count() > before
        });
    }
}

/// Checks that a login was refused with an HTML page and without a session.
fn assert_refused(browser: &Browser, page: &Page, status: u16, text: &str) {
    assert_eq!(page.status, status, "{}", page.text);
    assert!(page.text.contains(text) && page.text.starts_with("<!doctype html>"), "{}", page.text);
    assert!(page.location.is_none() && !browser.cookies.contains_key("granary"));
    assert!(!browser.cookies.contains_key("granary-login"), "the login has ended");
}

#[test]
#[ignore = "needs node and oidc-provider; .ci/run installs it and runs this"]
fn groups_give_roles_in_two_projects_and_a_session_like_any_other() {
    let (all, _process) = WithProvider::start();
    let (guarded, mut browser) = (&all.guarded, Browser::new());
    let (_, shown) = guarded.send_with("GET", "/api/v1/access/oidc", &[], "");
    assert_eq!(shown, json!({ "name": "Example <ID>" }));
    let page = all.log_in(&mut browser, "ann");
    assert_eq!(page.status, 303, "{}", page.text);
    assert_eq!(page.location, Some(all.address("/")));
    let cookie = page.set_cookies.iter().find(|text| text.starts_with("granary=")).unwrap();
    assert!(cookie.ends_with("; Path=/; Max-Age=604800; HttpOnly; SameSite=Lax"), "{cookie}");
    let (_, me) = all.me(&browser);
    assert_eq!(me["name"], "oidc:ann");
    assert_eq!(me["display_name"], "ann@example.org");
    assert_eq!(me["roles"], json!({ "default": "viewer", "web": "editor" }));
    assert_eq!((&me["password"], &me["kind"]), (&json!(false), &json!("user")));
    let note = json!({ "text": "x" }).to_string();
    let add = ("POST", "/api/v1/annotations");
    assert_eq!(all.send(&browser, add, "default", &note).0, 403);
    let (status, answer) = all.send(&browser, add, "web", &note);
    assert!([200, 201].contains(&status), "{status} {answer}");
    let record = all.audit().into_iter().find(|record| record["action"] == "login").unwrap();
    assert_eq!((&record["who"], &record["outcome"]), (&json!("oidc:ann"), &json!("done")));
    assert_eq!(record["object"], format!("http://127.0.0.1:{}", all.options.port));
    // A local user cannot have the name of a provider's user.
    let body = json!({ "name": "oidc:ann", "password": PASSWORD, "roles": {} }).to_string();
    assert_eq!(guarded.send("POST", "/api/v1/access/users", &guarded.admin, &body).0, 400);
    let login = json!({ "user": "oidc:ann", "password": PASSWORD });
    assert_eq!(guarded.enter("login", None, &login).status, 401);
    // An administrator can disable the user, but not give other roles or a password.
    let path = "/api/v1/access/users/oidc:ann";
    for change in [json!({ "roles": { "*": "admin" } }), json!({ "password": PASSWORD })] {
        let (status, answer) = guarded.send("POST", path, &guarded.admin, &change.to_string());
        assert_eq!(status, 400, "{answer}");
        assert!(answer["message"].as_str().unwrap().contains("security.oidc.roles"), "{answer}");
    }
    let disable = json!({ "disabled": true }).to_string();
    assert_eq!(guarded.send("POST", path, &guarded.admin, &disable).0, 200);
    assert_eq!(all.me(&browser).0, 401);
    let mut again = Browser::new();
    let page = all.log_in(&mut again, "ann");
    assert_refused(&again, &page, 403, "disabled your user");
    assert!(!guarded.daemon.log().contains(SECRET));
}

#[test]
#[ignore = "needs node and oidc-provider; .ci/run installs it and runs this"]
fn nobody_else_gets_a_session() {
    let (all, _process) = WithProvider::start();
    let callback = all.address("/login/oidc/callback");
    let mut browser = Browser::new();
    let page = all.log_in(&mut browser, "bob");
    assert_refused(&browser, &page, 403, "None of your groups at Example &lt;ID&gt; has a role");
    assert!(!page.text.contains("staff"));
    // Requests with a used code and state are refused, with the cookie and without.
    let mut ann = Browser::new();
    let used = all.returned(&mut ann, "ann");
    let cookie = ann.cookies["granary-login"].clone();
    assert_eq!(ann.get(&used).status, 303);
    let mut thief = Browser::new();
    let page = thief.get(&used);
    assert_refused(&thief, &page, 401, "Login expired");
    thief.cookies.insert("granary-login".to_owned(), cookie);
    let page = thief.get(&used);
    assert_refused(&thief, &page, 401, "did not confirm");
    // The answer was sent to another browser, as in a forged login.
    let mut other = Browser::new();
    let foreign = all.returned(&mut Browser::new(), "ann");
    all.begin(&mut other);
    let page = other.get(&foreign);
    assert_refused(&other, &page, 401, "Login expired");
    // The provider receives another nonce, or another challenge of PKCE.
    for parameter in ["nonce=", "code_challenge="] {
        let mut browser = Browser::new();
        let address = all.begin(&mut browser);
        let (before, value) = address.split_once(parameter).unwrap();
        let (first, rest) = value.split_at(1);
        let changed = if first == "a" { "b" } else { "a" };
        let address = format!("{before}{parameter}{changed}{rest}");
        let returned = browser.fill_forms(&address, "ann");
        let page = browser.get(&returned);
        assert_refused(&browser, &page, 401, "did not confirm");
    }
    // The answers have no code, another issuer or a repeated parameter, or the person declined.
    let mut browser = Browser::new();
    for (change, text) in [
        ("&error=access_denied", "Example &lt;ID&gt; ended the login"),
        ("&code=a&iss=https%3A%2F%2Fevil.example", "Login expired"),
        ("&code=a&code=b", "Login expired"),
        ("", "Login expired"),
    ] {
        let address = all.begin(&mut browser);
        let (_, state) = address.split_once("state=").unwrap();
        let state = state.split('&').next().unwrap();
        let page = browser.get(&format!("{callback}?state={state}{change}"));
        assert_refused(&browser, &page, 401, text);
    }
    // The parameters of a request cannot change the address to which a login leads.
    let provider = format!("http://127.0.0.1:{}/", all.options.port);
    for path in ["/login/oidc?next=//evil.example", "/login/oidc?redirect_uri=http://evil.example"]
    {
        let location = Browser::new().open(&all.address(path), "none").location.unwrap();
        assert!(location.starts_with(&provider) && !location.contains("evil"), "{location}");
    }
    // A link from another site leads to the page, where the person begins the login.
    let page = Browser::new().get(&all.address("/login/oidc"));
    assert_eq!((page.location, page.set_cookies), (Some(all.address("/login")), vec![]));
    let counts = ["right", "no_role", "state", "token", "denied"].map(|word| all.count(word));
    assert_eq!(counts, [1, 1, 5, 3, 1]);
    let refused = |reason: &str| {
        let audit = all.audit();
        let found = audit.iter().filter(|record| record["reason"] == reason);
        found.map(|record| record["count"].as_u64().unwrap()).sum::<u64>()
    };
    let reasons = ["no_role", "state", "token", "denied"].map(refused);
    assert_eq!(reasons, [1, 5, 3, 1]);
    assert!(all.audit().iter().any(|record| record["who"] == "oidc:bob"));
}

#[test]
#[ignore = "needs node and oidc-provider; .ci/run installs it and runs this"]
fn a_forged_and_an_expired_token_are_refused_and_rotated_keys_are_fetched() {
    let (all, process) = WithProvider::start();
    assert_eq!(all.log_in(&mut Browser::new(), "ann").status, 303);
    // Another provider at the same address, whose key has the same id.
    drop(process);
    let process = all.options.start();
    let mut browser = Browser::new();
    let page = all.log_in(&mut browser, "ann");
    assert_refused(&browser, &page, 401, "did not confirm");
    drop(process);
    let rotated = ProviderOptions { kid: "second", alg: "ES256", ..all.options.clone() };
    let process = rotated.start();
    let page = all.log_in(&mut browser, "ann");
    assert_eq!(page.status, 303, "{}", page.text);
    assert!(all.guarded.daemon.log().contains("a token has an unknown key"));
    // A second rotation within half a minute does not fetch the keys again.
    drop(process);
    let process = ProviderOptions { kid: "third", ..rotated.clone() }.start();
    let mut browser = Browser::new();
    let page = all.log_in(&mut browser, "ann");
    assert_refused(&browser, &page, 401, "did not confirm");
    drop(process);
    let (all, process) = WithProvider::start();
    drop(process);
    let expired = ProviderOptions { id_token_seconds: -1, ..all.options.clone() };
    let _process = expired.start();
    let page = all.log_in(&mut browser, "ann");
    assert_refused(&browser, &page, 401, "did not confirm");
}

#[test]
#[ignore = "needs node and oidc-provider; .ci/run installs it and runs this"]
fn a_provider_that_is_down_says_so_and_reloaded_rules_end_sessions() {
    let all = WithProvider::start_alone();
    let mut browser = Browser::new();
    for _ in 0..3 {
        let page = browser.open(&all.address("/login/oidc"), "same-origin");
        assert_refused(&browser, &page, 503, "does not answer");
    }
    let log = all.guarded.daemon.log();
    assert_eq!(log.matches("no login at the provider").count(), 1, "{log}");
    assert!(log.contains("Connection refused"), "{log}");
    all.guarded.user("eve", &json!({ "default": "viewer" }));
    all.guarded.log_in("eve");
    // Only the user info has the groups, and the subject is no part of a name.
    let options = ProviderOptions { id_token_has_claims: false, ..all.options.clone() };
    let process = options.start();
    wait_until("the provider answers", || {
        browser.open(&all.address("/login/oidc"), "same-origin").status == 303
    });
    assert_eq!(all.log_in(&mut browser, "cy/x y").status, 303);
    let (_, me) = all.me(&browser);
    assert!(me["name"].as_str().unwrap().starts_with("oidc:sha256:"), "{me}");
    assert_eq!(me["roles"], json!({ "default": "viewer" }));
    // The provider fails in the middle of a login.
    let mut other = Browser::new();
    let returned = all.returned(&mut other, "ann");
    drop(process);
    let page = other.get(&returned);
    assert_refused(&other, &page, 503, "does not answer");
    let _process = options.start();
    // A changed name of the provider keeps the sessions; changed rules end them.
    all.reload("name = 'Example <ID>'", "name = 'Example'");
    assert_eq!(all.me(&browser).0, 200);
    all.reload(ROLES, "roles = { dev = { web = 'viewer' } }");
    assert_eq!(all.me(&browser).0, 401);
    assert_eq!(all.log_in(&mut browser, "cy/x y").status, 303);
    assert_eq!(all.me(&browser).1["roles"], json!({ "web": "viewer" }));
    // The provider refuses a wrong secret, for which the person is not responsible.
    fs::write(all.guarded.daemon.dir.path().join("secret"), "wrong").unwrap();
    let mut again = Browser::new();
    let page = all.log_in(&mut again, "ann");
    assert_refused(&again, &page, 503, "does not accept this Granary");
    assert!(all.guarded.daemon.log().contains("client_secret of security.oidc"));
}

#[test]
fn without_a_provider_nobody_logs_in_at_one() {
    let guarded = Guarded::start();
    let (status, answer) = guarded.send_with("GET", "/api/v1/access/oidc", &[], "");
    assert_eq!((status, answer), (200, json!({ "name": null })));
    for path in ["/login/oidc", "/login/oidc/callback?code=a&state=b"] {
        let (status, text) = guarded.send_with("GET", path, &[], "");
        assert_eq!(status, 404, "{text}");
        assert!(text.as_str().unwrap().contains("has no provider"), "{text}");
    }
}
