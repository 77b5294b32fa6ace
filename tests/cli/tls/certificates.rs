//! Files of certificates: faults at the start, and TLS that a reload turns on and off.

use std::{fs, process::Command};

use super::{Authority, TlsDaemon, run, tls_settings};
use crate::daemon::{Daemon, client, granary};

#[test]
fn a_start_with_faulty_files_names_the_file_and_the_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::new(dir.path(), "ca");
    authority.sign("server");
    authority.sign("other");
    let (settings, path) = (tls_settings(dir.path()), dir.path().to_owned());
    let mut daemon = Daemon::new(dir, &settings, "https", client());
    fs::copy(path.join("other.key"), path.join("server.key")).unwrap();
    let log = daemon.expect_failed_start();
    for part in ["server.key", "is not the key of the certificate", "replace both files"] {
        assert!(log.contains(part), "{part} in {log}");
    }
    fs::remove_file(path.join("server.key")).unwrap();
    let log = daemon.expect_failed_start();
    assert!(log.contains("server.key: the file does not exist"), "{log}");
    // Nothing was created.
    assert!(!daemon.data("").exists());
    let file = path.join("granary.toml");
    let output = granary().arg("check-config").arg("--config").arg(file).output().unwrap();
    let warning = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && warning.contains("server.key"), "{warning}");
}

#[test]
fn a_reload_turns_tls_on_and_off() {
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::new(dir.path(), "ca");
    authority.sign("server");
    let on = tls_settings(dir.path());
    let daemon = Daemon::start_in(dir, "[log]\nfilter = 'info'\n");
    let file = daemon.dir.path().join("granary.toml");
    let https = daemon.url.replace("http://", "https://");
    let post = |url: &str| {
        let mut command = Command::new("curl");
        command.args(["--silent", "--fail-with-body", "--max-time", "20", "--cacert"]);
        command.arg(authority.file("pem"));
        run(command.args(["--request", "POST", &format!("{url}/-/reload")]))
    };
    fs::write(&file, &on).unwrap();
    let answer = post(&daemon.url);
    assert!(answer.contains("tls.certificate_file"), "{answer}");
    // The shown settings contain the paths of files, but not their content.
    assert!(answer.contains("server.key"), "{answer}");
    fs::write(&file, "").unwrap();
    post(&https);
    let metrics = daemon.metrics();
    assert!(metrics.contains("granary_tls_certificate_expires_timestamp_seconds 0"), "{metrics}");
}

#[test]
fn an_expired_certificate_is_reported() {
    let served = TlsDaemon::start("");
    let expired = Command::new("openssl")
        .current_dir(served.folder())
        .args(["x509", "-in", "server.pem", "-signkey", "server.key", "-days", "-1"])
        .args(["-out", "expired.pem"])
        .output()
        .unwrap();
    assert!(expired.status.success(), "{}", super::text_of(&expired));
    fs::rename(served.folder().join("expired.pem"), served.folder().join("server.pem")).unwrap();
    served.reload();
    let mut insecure = served.curl("/readyz");
    let readyz = run(insecure.arg("--insecure"));
    assert!(readyz.contains("the certificate expired at"), "{readyz}");
}
