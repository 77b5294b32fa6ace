//! The clients of StatsD and DogStatsD against the real agent and the real daemon.

use std::{net::UdpSocket, path::Path, process::Command};

use super::{Sender, last_and_total, last_and_total_of, run_script, wait_until};
use crate::daemon::Daemon;

fn has_series(daemon: &Daemon, metric: &str) -> bool {
    daemon.query(&["series", "--metric", metric])["total"] != 0
}

#[test]
#[ignore = "needs statsd and datadog, clients in Python; .ci/run installs it and runs this"]
fn the_statsd_clients_deliver_their_measurements() {
    let agent = Path::new(env!("CARGO_BIN_EXE_granary")).with_file_name("granary-agent-statsd");
    assert!(agent.exists(), "no {}; cargo build --workspace builds it", agent.display());
    let daemon = Daemon::start("");
    let dir = tempfile::tempdir().unwrap();
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let mut command = Command::new(agent);
    command.args(["--url", &daemon.url, "--interval", "1s", "--agent-id", "statsd-test"]);
    command.args(["--statsd-listen", &format!("127.0.0.1:{port}")]);
    command.arg("--spool-dir").arg(dir.path().join("spool"));
    let _agent = Sender::start(&mut command, &dir.path().join("log"));
    wait_until("the agent", || has_series(&daemon, "statsd_lines_total"));
    run_script("senders/statsd_clients.py", &["127.0.0.1", &port]);
    // The script sends the visitors last.
    wait_until("the visitors", || has_series(&daemon, "visitors_unique"));
    let last = |metric: &str| last_and_total(&daemon, metric).0;
    let total = |metric: &str| last_and_total(&daemon, metric).1;
    assert_eq!(total("shop.orders"), 50.0);
    assert_eq!(total("shop.clicks"), 200.0);
    assert_eq!(last("shop.depth"), 10.5);
    assert_eq!(last("shop.cold"), -3.0);
    assert_eq!(last("shop.users_unique"), 3.0);
    assert_eq!((total("shop.wait_count"), total("shop.wait_sum")), (100.0, 5050.0));
    assert_eq!((last("shop.wait_min"), last("shop.wait_max")), (1.0, 100.0));
    assert_eq!(total("shop.wait_distribution"), 100.0);
    assert_eq!(total("shop.block_count"), 1.0);
    let views = |tags: &str| last_and_total_of(&daemon, "page.views", tags).1;
    assert_eq!((views("page=home,env=prod"), views("page=cart,env=prod")), (10.0, 14.0));
    assert_eq!(last_and_total_of(&daemon, "queue.depth", "queue=mail,urgent=true").0, 7.25);
    assert_eq!((total("body.bytes_count"), total("body.bytes_sum")), (4.0, 1000.0));
    assert_eq!((last("body.bytes_min"), last("body.bytes_max")), (100.0, 400.0));
    assert_eq!((total("answer.size_count"), total("answer.size_sum")), (4.0, 12.0));
    assert_eq!((total("answer.time_count"), total("answer.time_sum")), (4.0, 100.0));
    assert_eq!(last_and_total_of(&daemon, "visitors_unique", "page=home").0, 2.0);
    assert_eq!(last("statsd_bad_lines_total"), 0.0);
    let kind =
        |metric: &str| daemon.query(&["series", "--metric", metric])["series"][0]["kind"].clone();
    let kinds = [kind("shop.orders"), kind("shop.depth"), kind("shop.wait_distribution")];
    assert_eq!(kinds, ["delta", "gauge", "deltahistogram"]);
}
