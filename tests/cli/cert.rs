//! `granary cert`, checked by openssl.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Output},
};

use crate::daemon::granary;

/// Runs a command in the folder.
fn cert(folder: &Path, args: &[&str]) -> Output {
    granary().arg("cert").args(args).current_dir(folder).output().unwrap()
}

/// Runs a command in the folder, which must succeed, and returns its output.
fn made(folder: &Path, args: &[&str]) -> String {
    let output = cert(folder, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a command in the folder, which must fail, and returns its error.
fn refused(folder: &Path, args: &[&str]) -> String {
    let output = cert(folder, args);
    assert!(!output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr).unwrap()
}

fn openssl(folder: &Path, args: &[&str]) -> String {
    let output = Command::new("openssl").args(args).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the line of the output that begins with this word.
fn line<'a>(output: &'a str, word: &str) -> &'a str {
    output.lines().map(str::trim).find(|line| line.starts_with(word)).unwrap()
}

fn mode(file: &Path) -> u32 {
    fs::metadata(file).unwrap().permissions().mode() & 0o777
}

#[test]
fn openssl_accepts_the_certificates_for_their_names_and_purposes() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let error = refused(at, &["server", "--dir", "tls", "--host", "mon"]);
    assert!(error.contains("granary cert ca --dir tls"), "{error}");
    let output = made(at, &["ca", "--dir", "tls"]);
    assert!(output.contains("granary cert server --dir tls --host"), "{output}");
    let names = "mon.example.org,*.example.net,192.0.2.7,2001:db8::7";
    let output = made(at, &["server", "--dir", "tls", "--host", names]);
    made(at, &["client", "web1.example.org", "--dir", "tls", "--days", "30"]);
    let tls = at.join("tls");
    for key in ["ca.key", "server.key", "web1.example.org.key"] {
        assert_eq!(mode(&tls.join(key)), 0o600, "{key}");
    }
    let verify = ["verify", "-x509_strict", "-CAfile", "tls/ca.pem", "-purpose"];
    for args in [
        ["sslserver", "-verify_hostname", "mon.example.org", "tls/server.pem"],
        ["sslserver", "-verify_hostname", "a.example.net", "tls/server.pem"],
        ["sslserver", "-verify_ip", "192.0.2.7", "tls/server.pem"],
        ["sslserver", "-verify_ip", "2001:db8::7", "tls/server.pem"],
        ["sslclient", "-verify_hostname", "web1.example.org", "tls/web1.example.org.pem"],
    ] {
        assert!(openssl(at, &[&verify[..], &args].concat()).contains(": OK"), "{args:?}");
    }
    let text = openssl(at, &["x509", "-in", "tls/server.pem", "-noout", "-text"]);
    for fact in [
        "NIST CURVE: P-256",
        "ecdsa-with-SHA256",
        "CA:FALSE",
        "TLS Web Server Authentication",
        "Subject: CN = mon.example.org",
        "Issuer: CN = Granary CA ",
    ] {
        assert!(text.contains(fact), "{fact} is not in {text}");
    }
    let text = openssl(at, &["x509", "-in", "tls/ca.pem", "-noout", "-text"]);
    assert!(text.contains("CA:TRUE, pathlen:0"), "{text}");
    // openssl computes the same pin.
    openssl(at, &["x509", "-in", "tls/server.pem", "-noout", "-pubkey", "-out", "public.pem"]);
    openssl(at, &["pkey", "-pubin", "-in", "public.pem", "-outform", "der", "-out", "public.der"]);
    let digest = openssl(at, &["dgst", "-sha256", "-r", "public.der"]);
    let hex = digest.split(' ').next().unwrap();
    let pin: granary_https::Pin =
        line(&output, "--pin").trim_start_matches("--pin ").parse().unwrap();
    assert_eq!(format!("sha256:{hex}").parse(), Ok(pin));
    let shown = made(at, &["show", "tls/server.pem"]);
    assert_eq!(line(&shown, "pin"), format!("pin      {pin}"));
    assert_eq!(
        line(&shown, "names"),
        "names    mon.example.org, *.example.net, 192.0.2.7, 2001:db8::7"
    );
    assert!(
        line(&shown, "valid").ends_with("(396 days left)") || shown.contains("(397 days left)")
    );
}

#[test]
fn a_renewal_keeps_key_and_names_and_nothing_else_is_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let read = |name: &str| fs::read(at.join(name)).unwrap();
    made(at, &["ca"]);
    made(at, &["server", "--host", "mon,192.0.2.7"]);
    let error = refused(at, &["ca"]);
    assert!(error.contains("ca.key exists; --renew"), "{error}");
    let error = refused(at, &["server", "--host", "other"]);
    assert!(error.contains("server.key exists; --renew"), "{error}");
    let error = refused(at, &["client", "web1", "--renew"]);
    assert!(error.contains("web1.key does not exist; leave out --renew"), "{error}");
    let (ca, server, key) = (read("ca.pem"), read("server.pem"), read("server.key"));
    let pin = line(&made(at, &["show", "server.pem"]), "pin").to_owned();
    let number = |file: &str| openssl(at, &["x509", "-in", file, "-noout", "-serial"]);
    let first = number("server.pem");
    made(at, &["server", "--renew"]);
    let shown = made(at, &["show", "server.pem"]);
    assert_eq!((line(&shown, "pin"), read("server.key")), (&*pin, key));
    assert_eq!(line(&shown, "names"), "names    mon, 192.0.2.7");
    assert_ne!((number("server.pem"), read("server.pem")), (first, server));
    // A renewed CA has the same key and name: it vouches for earlier certificates, and the earlier
    // CA for later ones.
    fs::rename(at.join("ca.pem"), at.join("old.pem")).unwrap();
    made(at, &["ca", "--renew"]);
    assert_ne!(read("ca.pem"), ca);
    for authority in ["old.pem", "ca.pem"] {
        openssl(at, &["verify", "-CAfile", authority, "server.pem"]);
    }
    made(at, &["server", "--renew", "--host", "other"]);
    assert!(made(at, &["show", "server.pem"]).contains("names    other\n"));
    let names: Vec<_> = fs::read_dir(at).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 5, "no temporary file is left: {names:?}");
}

#[test]
fn wrong_input_is_refused_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    made(at, &["ca"]);
    let error = refused(at, &["server"]);
    assert!(error.contains("--host mon.example.org"), "{error}");
    let error = refused(at, &["server", "--host", "http://mon"]);
    assert!(error.contains("use mon.example.org, *.example.org or 192.0.2.7"), "{error}");
    let error = refused(at, &["client", "../x"]);
    assert!(error.contains("not a host name"), "{error}");
    let error = refused(at, &["client", "ca"]);
    assert!(error.contains("use the client's host name"), "{error}");
    fs::write(at.join("ca.key"), "x").unwrap();
    let error = refused(at, &["server", "--host", "mon"]);
    assert!(error.contains("ca.key: no private key found"), "{error}");
    assert!(!at.join("server.key").exists(), "nothing is half made");
    // The CA of another tool has another name.
    let request =
        ["req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"];
    let files = ["-subj", "/CN=other", "-keyout", "ca.key", "-out", "ca.pem"];
    openssl(at, &[&request[..], &files].concat());
    let error = refused(at, &["server", "--host", "mon"]);
    assert!(
        error.contains("ca.pem is not the certificate that `granary cert ca` makes"),
        "{error}"
    );
    assert!(!at.join("server.key").exists(), "nothing is half made");
    let error = refused(at, &["show", "ca.key"]);
    assert!(error.contains("ca.key: no certificate found"), "{error}");
}
