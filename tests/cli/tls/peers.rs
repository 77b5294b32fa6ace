//! Real senders over TLS. They must be installed, so these tests are ignored by default: `.ci/run`
//! installs the senders and runs them.

use std::{
    fs::{self, File},
    io::Write,
    net::TcpStream,
    process::{Child, Command, Stdio},
};

use super::{TlsDaemon, run};
use crate::{
    peers::{need, relay_is_ready},
    ports::free_port,
};

/// The process of a sender, which is killed when this value is dropped.
struct Peer(Child);

impl Peer {
    /// Starts a sender with its log in the daemon's folder.
    fn start(served: &TlsDaemon, command: &mut Command) -> Self {
        let log = File::create(served.folder().join("peer.log")).unwrap();
        let (out, err) = (log.try_clone().unwrap(), log);
        Self(command.stdin(Stdio::null()).stdout(out).stderr(err).spawn().unwrap())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Returns a configuration that scrapes the daemon over https.
fn scrape_config(served: &TlsDaemon) -> String {
    format!(
        "global: {{scrape_interval: 1s}}\nscrape_configs:\n- job_name: granary\n  scheme: https\n  \
         tls_config: {{ca_file: {}}}\n  static_configs: [{{targets: ['{}']}}]\n",
        served.authority.file("pem"),
        served.address()
    )
}

/// Waits until the daemon has stored that its own scrape succeeded.
fn wait_for_scrape(served: &TlsDaemon) {
    let path = "/api/v1/query?query=up%7Bjob%3D%22granary%22%7D";
    served.wait_until("not delivered", || run(&mut served.curl(path)).contains(",\"1\"]"));
}

#[test]
#[ignore = "needs prometheus; .ci/run installs it and runs this"]
fn prometheus_scrapes_and_writes_over_tls() {
    need("prometheus");
    let served = TlsDaemon::start("");
    let write = format!(
        "remote_write:\n- url: {}/api/v1/write\n  tls_config: {{ca_file: {}}}\n",
        served.daemon.url,
        served.authority.file("pem")
    );
    let config = served.folder().join("prometheus.yml");
    fs::write(&config, scrape_config(&served) + &write).unwrap();
    let mut command = Command::new("prometheus");
    command.arg(format!("--config.file={}", config.display()));
    command.arg(format!("--storage.tsdb.path={}", served.folder().join("prometheus").display()));
    command.arg(format!("--web.listen-address=127.0.0.1:{}", free_port()));
    let _peer = Peer::start(&served, &mut command);
    wait_for_scrape(&served);
}

#[test]
#[ignore = "needs vmagent; .ci/run installs it and runs this"]
fn vmagent_scrapes_and_writes_over_tls() {
    need("vmagent");
    let served = TlsDaemon::start("");
    let config = served.folder().join("scrape.yml");
    fs::write(&config, scrape_config(&served)).unwrap();
    let mut command = Command::new("vmagent");
    command.arg(format!("-promscrape.config={}", config.display()));
    command.arg(format!("-remoteWrite.url={}/api/v1/write", served.daemon.url));
    command.arg(format!("-remoteWrite.tlsCAFile={}", served.authority.file("pem")));
    command.arg("-remoteWrite.flushInterval=200ms");
    command.arg(format!("-remoteWrite.tmpDataPath={}", served.folder().join("vm").display()));
    command.arg(format!("-httpListenAddr=127.0.0.1:{}", free_port()));
    let _peer = Peer::start(&served, &mut command);
    wait_for_scrape(&served);
}

#[test]
#[ignore = "needs carbon-c-relay; .ci/run installs it and runs this"]
fn carbon_c_relay_delivers_over_tls() {
    need("carbon-c-relay");
    let (port, relay_port) = (free_port(), free_port());
    let served = TlsDaemon::start(&format!("[graphite]\nlisten = ['tls://127.0.0.1:{port}']\n"));
    let config = served.folder().join("relay.conf");
    let cluster =
        format!("cluster granary forward localhost:{port} proto tcp transport plain ssl;\n");
    fs::write(&config, cluster + "match * send to granary;\n").unwrap();
    let mut command = Command::new("carbon-c-relay");
    command.arg("-f").arg(&config).args(["-p", &relay_port.to_string(), "-C"]);
    command.arg(served.authority.file("pem"));
    let _peer = Peer::start(&served, &mut command);
    let log = served.folder().join("peer.log");
    served.wait_until("no relay", || relay_is_ready(&log));
    let mut stream = TcpStream::connect(("127.0.0.1", relay_port)).unwrap();
    writeln!(stream, "relayed.over.tls 1 -1").unwrap();
    let path = "/api/v1/series";
    served.wait_until("not delivered", || run(&mut served.curl(path)).contains("relayed.over.tls"));
}
