//! The program as its user sees it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{net::UdpSocket, process::Command};

#[test]
fn a_port_that_is_taken_is_named() {
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_granary-agent-statsd"));
    let output = command.args(["--statsd-listen", &address, "--print"]).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    assert!(message.contains(&address), "{message}");
}
