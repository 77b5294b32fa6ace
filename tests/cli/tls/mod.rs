//! The real daemon over TLS, with certificates that openssl makes, and clients of other projects.

mod certificates;
mod clients;
mod exchange;
mod handshakes;
mod mapped;
mod peers;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

use ureq::tls::{Certificate, RootCerts, TlsConfig};

use crate::daemon::Daemon;

/// The time after which a test gives up.
const DEADLINE: Duration = Duration::from_secs(30);

#[expect(clippy::disallowed_methods, reason = "a deadline of a test")]
fn now() -> Instant {
    Instant::now()
}

/// Runs a program, which must succeed.
fn run(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = text_of(&output);
    assert!(output.status.success(), "{command:?}: {text}");
    text
}

/// Returns both outputs of a program.
fn text_of(output: &Output) -> String {
    let texts = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    texts.concat()
}

/// An authority that signs certificates, in a folder.
struct Authority {
    folder: PathBuf,
    name: &'static str,
}

impl Authority {
    /// Creates an authority whose files are `NAME.pem` and `NAME.key`.
    fn new(folder: &Path, name: &'static str) -> Self {
        fs::write(folder.join("openssl.cnf"), "[req]\ndistinguished_name = dn\n[dn]\n").unwrap();
        let authority = Self { folder: folder.to_owned(), name };
        authority.request(name, &["basicConstraints=critical,CA:TRUE"], &[]);
        authority
    }

    /// Signs a certificate for localhost; its files are `NAME.pem` and `NAME.key`.
    fn sign(&self, name: &str) {
        let names = format!("subjectAltName=DNS:localhost,DNS:{name}.example.org,IP:127.0.0.1");
        let (certificate, key) = (self.file("pem"), self.file("key"));
        let signer = ["-CA", &certificate, "-CAkey", &key];
        self.request(name, &["basicConstraints=critical,CA:FALSE", &names], &signer);
    }

    fn file(&self, ending: &str) -> String {
        self.folder.join(self.name).with_extension(ending).to_str().unwrap().to_owned()
    }

    fn request(&self, name: &str, extensions: &[&str], signer: &[&str]) {
        let mut command = Command::new("openssl");
        command.current_dir(&self.folder).args(["req", "-x509", "-config", "openssl.cnf"]);
        command.args(["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]);
        command.args(["-days", "30", "-subj", &format!("/CN={name}")]);
        command.args(extensions.iter().flat_map(|extension| ["-addext", extension]));
        command.args(["-out", &format!("{name}.pem"), "-keyout", &format!("{name}.key")]);
        run(command.args(signer));
    }

    /// Returns a client that trusts this authority.
    fn client(&self) -> ureq::Agent {
        let pem = fs::read(self.file("pem")).unwrap();
        let roots = RootCerts::new_with_certs(&[Certificate::from_pem(&pem).unwrap()]);
        let tls = TlsConfig::builder().root_certs(roots).build();
        ureq::Agent::config_builder().http_status_as_error(false).tls_config(tls).build().into()
    }
}

/// A daemon with a certificate, and its authority.
struct TlsDaemon {
    daemon: Daemon,
    authority: Authority,
}

/// Returns the settings that turn TLS on with the files `server.pem` and `server.key`.
fn tls_settings(folder: &Path) -> String {
    let folder = folder.display();
    format!("[tls]\ncertificate_file = '{folder}/server.pem'\nkey_file = '{folder}/server.key'\n")
}

impl TlsDaemon {
    /// Starts a daemon with a certificate for localhost and these keys of `[tls]` and further
    /// sections.
    fn start(settings: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let authority = Authority::new(dir.path(), "ca");
        authority.sign("server");
        let settings = tls_settings(dir.path()) + settings;
        let client = authority.client();
        Self { daemon: Daemon::start_tls(dir, &settings, client), authority }
    }

    fn folder(&self) -> &Path {
        self.daemon.dir.path()
    }

    /// Returns the address and the port.
    fn address(&self) -> &str {
        self.daemon.url.trim_start_matches("https://")
    }

    /// Returns a command of curl that trusts the authority and requests a path.
    fn curl(&self, path: &str) -> Command {
        let mut command = Command::new("curl");
        command.args(["--silent", "--show-error", "--fail-with-body", "--max-time", "20"]);
        command.arg("--cacert").arg(self.authority.file("pem"));
        command.arg(format!("{}{path}", self.daemon.url));
        command
    }

    /// Runs openssl's client with these arguments until the handshake is over.
    fn s_client(&self, args: &[&str]) -> (bool, String) {
        let mut command = Command::new("openssl");
        command.args(["s_client", "-connect", self.address(), "-CAfile"]);
        command.arg(self.authority.file("pem")).arg("-verify_return_error").args(args);
        let output = command.stdin(Stdio::null()).output().unwrap();
        (output.status.success(), text_of(&output))
    }

    /// Returns the serial number of the certificate in use.
    fn serial(&self) -> String {
        let (accepted, text) = self.s_client(&["-showcerts"]);
        assert!(accepted, "{text}");
        let file = self.folder().join("seen.pem");
        fs::write(&file, text).unwrap();
        run(Command::new("openssl").args(["x509", "-noout", "-serial", "-in"]).arg(file))
    }

    /// Returns the value of a metric without labels, or with the labels in the name.
    fn metric(&self, name: &str) -> f64 {
        let metrics = self.daemon.metrics();
        let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name} in {metrics}")).parse().unwrap()
    }

    /// Returns `/readyz`.
    fn readyz(&self) -> String {
        run(&mut self.curl("/readyz"))
    }

    /// Waits until a condition holds.
    fn wait_until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let since = now();
        while !holds() {
            assert!(since.elapsed() < DEADLINE, "{what}: {}", self.daemon.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
