//! The MongoDB agent against a real server of its protocol, feeding a real daemon.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use super::{Sender, last_and_total_of, python, run_script, wait_until};
use crate::{
    daemon::{Daemon, request},
    ports::free_port,
};

/// Starts secantus, which is installed next to the Python that `.ci/run` creates.
pub(super) fn start_secantus(port: u16, storage: &Path, log: &Path) -> Sender {
    start_with(port, storage, log, &[])
}

/// A server that can be killed and started again, and loses nothing that it confirmed.
pub(super) struct Server {
    dir: tempfile::TempDir,
    pub(super) port: u16,
    process: Option<Sender>,
}

impl Server {
    pub(super) fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("db")).unwrap();
        let mut server = Self { dir, port: free_port(), process: None };
        server.restart();
        run_script("mongodb_tables.py", &[&server.port.to_string()]);
        server
    }

    pub(super) fn restart(&mut self) {
        let path = |name: &str| self.dir.path().join(name);
        let (port, log, storage) = (self.port, path("server.log"), path("db"));
        let mut process = start_with(port, &storage, &log, &["--sync-on-commit"]);
        wait_until("the server", || {
            if let Some(status) = process.0.try_wait().unwrap() {
                panic!("the server ended ({status}): {}", std::fs::read_to_string(&log).unwrap());
            }
            std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        self.process = Some(process);
    }

    pub(super) fn kill(&mut self) {
        let mut process = self.process.take().unwrap();
        process.0.kill().unwrap();
        process.0.wait().unwrap();
    }

    pub(super) fn is_running(&self) -> bool {
        self.process.is_some()
    }
}

fn start_with(port: u16, storage: &Path, log: &Path, options: &[&str]) -> Sender {
    let python = python().get_program().to_owned();
    let program = Path::new(&python).with_file_name("secantusd-py");
    let mut command = Command::new(&program);
    command.args(["--host", "127.0.0.1", "--port", &port.to_string()]);
    command.args(options).arg("--storage-path").arg(storage);
    Sender::start(&mut command, log)
}

#[test]
#[ignore = "needs secantusdb, a server in Python; .ci/run installs it and runs this"]
fn the_mongodb_agent_samples_a_server_across_restarts() {
    let agent = Path::new(env!("CARGO_BIN_EXE_granary")).with_file_name("granary-agent");
    assert!(agent.exists(), "no {}; cargo build --workspace builds it", agent.display());
    let daemon = Daemon::start("");
    let dir = tempfile::tempdir().unwrap();
    let (port, storage) = (free_port(), dir.path().join("db"));
    std::fs::create_dir(&storage).unwrap();
    let server = start_secantus(port, &storage, &dir.path().join("server.log"));
    let uri = format!("mongodb://127.0.0.1:{port}/?directConnection=true");
    run_script("senders/mongodb_writes.py", &[&uri, "40"]);

    let host = format!("host=127.0.0.1:{port}");
    let mut command = Command::new(agent);
    command.args(["mongodb", "--url", &daemon.url, "--interval", "1s", "--agent-id", "mongo-test"]);
    command.args(["--target", &uri, "--timeout", "700ms", "--spool-dir"]);
    let log = dir.path().join("agent.log");
    let _agent = Sender::start(command.arg(dir.path().join("spool")), &log);
    let last = |metric: &str| {
        let args = ["series", "--metric", metric, "--tags", &host];
        let exists = daemon.query(&args)["total"] != 0;
        exists.then(|| last_and_total_of(&daemon, metric, &host).0)
    };
    wait_until("the server to be up", || last("mongodb_up") == Some(1.0));
    wait_until("the databases", || last("mongodb_db_data_size_total").is_some());
    assert_eq!(last("mongodb_state"), Some(1.0));
    assert_eq!(last("mongodb_has_primary"), Some(1.0));
    assert_eq!(last("mongodb_members_healthy"), Some(1.0));
    assert!(last("mongodb_version").is_some_and(|version| version >= 80_000.0));
    assert!(last("mongodb_memory_resident").is_some_and(|bytes| bytes > 1e6));
    assert!(last("mongodb_oplog_master_time").is_some());
    let tags = format!("{host},database=shop");
    let last_of_shop = |metric: &str| last_and_total_of(&daemon, metric, &tags).0;
    assert_eq!(last_of_shop("mongodb_database_object_count"), 40.0);
    assert_eq!(last_of_shop("mongodb_database_collection_count"), 1.0);
    wait_until("the server among the hosts", || {
        let (_, answer) = request(&daemon.url, "GET", "/api/v1/hosts", &[], "").unwrap();
        answer["hosts"].as_array().unwrap().iter().any(|host| {
            host["host"] == format!("127.0.0.1:{port}") && host["tags"]["role"] == "primary"
        })
    });

    drop(server);
    wait_until("the server to be gone", || last("mongodb_up") == Some(0.0));
    let _second_server = start_secantus(port, &storage, &dir.path().join("server.log"));
    wait_until("the server to be back", || last("mongodb_up") == Some(1.0));
    wait_until("the restart", || last("mongodb_restarts_in_last_hour") == Some(1.0));
}

/// A password in a URI appears in no log and no message.
#[test]
#[ignore = "needs the agent's program; .ci/run runs this"]
fn the_mongodb_agent_prints_no_password() {
    let agent = Path::new(env!("CARGO_BIN_EXE_granary")).with_file_name("granary-agent");
    assert!(agent.exists(), "no {}; cargo build --workspace builds it", agent.display());
    for uri in ["mongodb://user:s3cret@127.0.0.1:1/", "mongodb://user:s3cr:et@127.0.0.1:x/"] {
        let mut command = Command::new(&agent);
        command
            .args(["mongodb", "--target", uri, "--timeout", "300ms", "--print"])
            .env("RUST_LOG", "trace");
        let output = command.stdin(Stdio::null()).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        assert!(text.contains("127.0.0.1") && !text.contains("s3cr"), "{text}");
    }
}
