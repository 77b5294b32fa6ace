//! Clients whose certificate has scopes, with a real curl: the matrix of routes, and a reload.

use std::{fs, process::Command};

use super::{Authority, TlsDaemon, text_of, tls_settings};
use crate::daemon::{Daemon, granary};

/// A daemon with access control and scopes of some names, and its authorities.
struct Mapped {
    served: TlsDaemon,
    foreign: Authority,
}

/// Returns the settings with these scopes by name.
fn settings(folder: &std::path::Path, clients: &str) -> String {
    let ca = folder.join("ca.pem");
    format!(
        "{}client_ca_file = '{}'\nclients = {{ {clients} }}\n[security]\naccess = true\n",
        tls_settings(folder),
        ca.display()
    )
}

impl Mapped {
    fn start(clients: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let authority = Authority::new(dir.path(), "ca");
        for name in ["server", "sender", "viewer", "root", "stranger"] {
            authority.sign(name);
        }
        let settings = settings(dir.path(), clients);
        let client = authority.client();
        let served = TlsDaemon { daemon: Daemon::start_tls(dir, &settings, client), authority };
        let foreign = Authority::new(served.folder(), "foreign");
        foreign.sign("impostor");
        Self { served, foreign }
    }

    /// Returns the status of a request with a certificate; `None` when the connection fails.
    fn status(&self, certificate: &str, words: &[&str], path: &str) -> Option<u16> {
        let mut command = Command::new("curl");
        command.args(["--silent", "--output", "/dev/null", "--write-out", "%{http_code}"]);
        command.arg("--cacert").arg(self.served.authority.file("pem")).args(words);
        if !certificate.is_empty() {
            let file = |end: &str| self.served.folder().join(certificate).with_extension(end);
            command.arg("--cert").arg(file("pem")).arg("--key").arg(file("key"));
        }
        command.arg(format!("{}{path}", self.served.daemon.url));
        let output = command.output().unwrap();
        output.status.success().then(|| text_of(&output).trim().parse().unwrap())
    }
}

const CLIENTS: &str = "'Sender.example.org' = 'ingest', 'viewer.example.org' = 'read', \
                       'root.example.org' = 'admin, operate'";
const SAMPLE: [&str; 4] = [
    "--header",
    "Content-Type: application/json",
    "--data",
    r#"{"agent":"a","epoch":1,"seq":1,"samples":[{"metric":"load","value":1}]}"#,
];

#[test]
fn a_name_in_a_certificate_has_its_scopes_and_no_others() {
    let mapped = Mapped::start(CLIENTS);
    let status = |name: &str| {
        [
            mapped.status(name, &SAMPLE, "/api/v1/ingest"),
            mapped.status(name, &[], "/api/v1/series"),
            mapped.status(name, &["--request", "DELETE"], "/api/v1/series?metric=x"),
            mapped.status(name, &[], "/metrics"),
            mapped.status(name, &[], "/healthz"),
        ]
        .map(Option::unwrap_or_default)
    };
    assert_eq!(status("sender"), [200, 403, 403, 403, 200]);
    assert_eq!(status("viewer"), [403, 200, 403, 403, 200]);
    assert_eq!(status("root"), [200, 200, 200, 200, 200]);
    // A certificate without scopes counts as no certificate, and a certificate of another authority
    // ends the connection.
    assert_eq!(status("stranger"), [401, 401, 401, 401, 200]);
    assert_eq!(status(""), [401, 401, 401, 401, 200]);
    assert_eq!(status("impostor"), [0; 5]);
    assert_eq!(mapped.foreign.name, "foreign");
    // A key in the request counts instead of the certificate, even if the key is wrong.
    let key = fs::read_to_string(mapped.served.daemon.data("first-key")).unwrap();
    let bearer = |key: &str| format!("Authorization: Bearer {}", key.trim());
    let with = |key: &str| mapped.status("viewer", &["--header", &bearer(key)], "/metrics");
    assert_eq!((with(&key), with("gry_wrong")), (Some(200), Some(401)));
    // The audit shows the name.
    let mut command = granary();
    command.args(["audit", "--url", &mapped.served.daemon.url, "--ca-file"]);
    command.arg(mapped.served.authority.file("pem")).env("GRANARY_KEY", key.trim());
    let listed = text_of(&command.output().unwrap());
    assert!(listed.contains("certificate root.example.org"), "{listed}");
}

#[test]
fn a_reload_changes_the_scopes_of_open_connections() {
    let mapped = Mapped::start(CLIENTS);
    let folder = mapped.served.folder().to_owned();
    let changed = settings(&folder, "'root.example.org' = 'admin, operate'");
    fs::write(folder.join("granary.toml"), changed).unwrap();
    let mut command = Command::new("curl");
    let requests = [
        ("viewer", "GET", "/api/v1/series"),
        ("root", "POST", "/-/reload"),
        ("viewer", "GET", "/api/v1/series"),
    ];
    for (index, (name, method, path)) in requests.into_iter().enumerate() {
        if index > 0 {
            command.arg("--next");
        }
        command.args(["--silent", "--output", "/dev/null", "--request", method]);
        command.args(["--write-out", "%{http_code} %{num_connects}\\n"]);
        command.arg("--cacert").arg(mapped.served.authority.file("pem"));
        let file = |end: &str| folder.join(name).with_extension(end);
        command.arg("--cert").arg(file("pem")).arg("--key").arg(file("key"));
        command.arg(format!("{}{path}", mapped.served.daemon.url));
    }
    // The last request uses the connection of the first one.
    assert_eq!(text_of(&command.output().unwrap()), "200 1\n200 1\n401 0\n");
}
