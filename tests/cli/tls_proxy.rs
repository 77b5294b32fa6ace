//! A TLS server in front of a daemon, whose certificate can be exchanged: it forwards one request
//! on each connection.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use rustls::{
    RootCertStore, ServerConfig, ServerConnection, StreamOwned,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::WebPkiClientVerifier,
};

/// The longest time that a connection may take.
const TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) struct TlsProxy {
    pub(crate) address: SocketAddr,
    config: Arc<Mutex<Arc<ServerConfig>>>,
}

/// Makes a CA and a server certificate in a folder with `granary cert`.
pub(crate) fn make_certificates(folder: &Path, hosts: &str) {
    for args in [&["ca"][..], &["server", "--host", hosts]] {
        let output = crate::daemon::granary()
            .arg("cert")
            .args(args)
            .arg("--dir")
            .arg(folder)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

fn chain(file: PathBuf) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_file_iter(file).unwrap().map(Result::unwrap).collect()
}

/// Returns the configuration of a server with `server.pem` and `server.key`. With `client_ca`, it
/// requires a certificate of the client that this authority signed.
fn server_config(folder: &Path, client_ca: Option<&Path>) -> Arc<ServerConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .unwrap();
    let builder = match client_ca {
        None => builder.with_no_client_auth(),
        Some(file) => {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(chain(file.to_owned()));
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().unwrap())
        }
    };
    let key = PrivateKeyDer::from_pem_file(folder.join("server.key")).unwrap();
    Arc::new(builder.with_single_cert(chain(folder.join("server.pem")), key).unwrap())
}

impl TlsProxy {
    /// Starts a server with the certificate of a folder in front of an address.
    pub(crate) fn start(folder: &Path, upstream: SocketAddr, client_ca: Option<&Path>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let config = Arc::new(Mutex::new(server_config(folder, client_ca)));
        let current = Arc::clone(&config);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let config = current.lock().unwrap().clone();
                // A client that does not trust the server disconnects.
                thread::spawn(move || serve(config, stream.unwrap(), upstream).is_ok());
            }
        });
        Self { address, config }
    }

    /// Exchanges the certificate; later connections get that of this folder.
    pub(crate) fn exchange(&self, folder: &Path) {
        *self.config.lock().unwrap() = server_config(folder, None);
    }

    /// Returns the address with a host name.
    pub(crate) fn url(&self, host: &str) -> String {
        format!("https://{host}:{}", self.address.port())
    }
}

fn serve(config: Arc<ServerConfig>, stream: TcpStream, upstream: SocketAddr) -> io::Result<()> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let connection = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut tls = StreamOwned::new(connection, stream);
    if let Err(cause) = tls.conn.complete_io(&mut tls.sock) {
        // The alert is lost when unread bytes reset the connection.
        tls.sock.shutdown(Shutdown::Write)?;
        io::copy(&mut tls.sock, &mut io::sink())?;
        return Err(cause);
    }
    let mut reader = BufReader::new(tls);
    let (mut head, mut line, mut length) = (String::new(), String::new(), 0);
    while reader.read_line(&mut line)? > 2 {
        if let Some(text) = line.to_lowercase().strip_prefix("content-length:") {
            length = text.trim().parse().unwrap();
        }
        head += &line;
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let mut daemon = TcpStream::connect(upstream)?;
    daemon.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes())?;
    daemon.write_all(&body)?;
    let tls = reader.get_mut();
    io::copy(&mut daemon, tls)?;
    tls.conn.send_close_notify();
    tls.flush()?;
    tls.sock.shutdown(Shutdown::Write)
}
