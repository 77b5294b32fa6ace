//! Clients of a shard: one appends batches until they are acknowledged, one asks for the state.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use crate::node::NODES;

/// The time after which a client tries another node.
const PATIENCE: Duration = Duration::from_millis(1500);

/// The progress of a shard, which its clients share.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// The last acknowledged batch.
    pub(crate) acked: AtomicU32,
    pub(crate) stops: AtomicBool,
}

/// An acknowledgement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ack {
    pub(crate) at: Instant,
    pub(crate) epoch: u64,
}

/// Sends a line to a node, and returns its answer.
pub(crate) fn request(folder: &Path, node: &str, line: &str) -> Option<String> {
    let port = fs::read_to_string(folder.join(format!("{node}.port"))).ok()?;
    let address = SocketAddr::from(([127, 0, 0, 1], port.parse().ok()?));
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    writeln!(stream, "{line}").ok()?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).ok()?;
    (!answer.is_empty()).then(|| answer.trim_end().to_owned())
}

/// Appends batches to a shard, one after the other, and returns the acknowledgements.
pub(crate) fn append_until_stopped(
    folder: &Path,
    shard: u16,
    progress: &Arc<Progress>,
) -> Vec<Ack> {
    let mut acks = Vec::new();
    let mut node = 0;
    while !progress.stops.load(Ordering::SeqCst) {
        let batch = progress.acked.load(Ordering::SeqCst) + 1;
        let answer = request(folder, NODES[node], &format!("append {shard} {batch}"));
        if let Some(epoch) = answer.as_deref().and_then(|answer| answer.strip_prefix("ok ")) {
            progress.acked.store(batch, Ordering::SeqCst);
            acks.push(Ack { at: now(), epoch: epoch.parse().unwrap() });
            thread::sleep(Duration::from_millis(5));
        } else {
            node = (node + 1) % NODES.len();
            thread::sleep(Duration::from_millis(20));
        }
    }
    acks
}

/// Asks all nodes for the state of a shard, and fails if an answer that counts as up to date lacks
/// a batch that was acknowledged before the question. Returns the numbers of up-to-date and of all
/// answers.
pub(crate) fn query_until_stopped(
    folder: &Path,
    shard: u16,
    progress: &Arc<Progress>,
) -> (u32, u32) {
    let (mut fresh, mut all) = (0, 0);
    while !progress.stops.load(Ordering::SeqCst) {
        for node in NODES {
            let before = progress.acked.load(Ordering::SeqCst);
            let Some(answer) = request(folder, node, &format!("state {shard}")) else { continue };
            let words: Vec<&str> = answer.split(' ').collect();
            all += 1;
            if words[0] == "true" {
                fresh += 1;
                let last: u32 = words[1].parse().unwrap();
                assert!(last >= before, "{node} answered {answer} after batch {before} of {shard}");
            }
        }
        thread::sleep(Duration::from_millis(100));
    }
    (fresh, all)
}

#[expect(clippy::disallowed_methods, reason = "a test measures real time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
