//! Random pipelines, finds, counts and `distinct`s, compared with a server of MongoDB's protocol.

use super::{mongodb::start_secantus, run_script};
use crate::{
    daemon::{Daemon, HOURS_AND_DAYS, granularities},
    peers::wait_until,
    ports::free_port,
};

#[test]
#[ignore = "needs secantusdb, a server in Python; .ci/run installs it and runs this"]
fn pipelines_have_the_answers_of_a_server_of_mongodbs_protocol() {
    let daemon = Daemon::start(&granularities(&HOURS_AND_DAYS));
    let dir = tempfile::tempdir().unwrap();
    let (port, storage) = (free_port(), dir.path().join("db"));
    std::fs::create_dir(&storage).unwrap();
    let _server = start_secantus(port, &storage, &dir.path().join("server.log"));
    wait_until("the server", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    let seed = std::env::var("GRANARY_PIPELINES_SEED").unwrap_or_else(|_| "7".to_owned());
    run_script("clients/compare_pipelines.py", &[&daemon.url, &port.to_string(), &seed, "300"]);
}
