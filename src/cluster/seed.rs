//! The copy of a replica from another member, when the log no longer has the records that this
//! node's disk lacks.
//!
//! Must never know: the roles, the files of a store.

use std::{
    io::{self, Read},
    ops::ControlFlow,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use anyhow::{Context, bail};
use crossbeam_channel::{Receiver, RecvTimeoutError, bounded};
use granary_https::Https;

use super::{metrics::NodeMetrics, nodes::KnownNodes, secret::KnownSecret};
use crate::{
    clock::Stopwatch,
    replication::{NodeName, ShardFault, ShardRow},
    store::{CopyLimits, DiskSpace, ReceivedCopy, receive_copy},
};

/// The path at which a node sends a copy of its replica.
pub(super) const SNAPSHOT_PATH: &str = "/cluster/v1/snapshot";
/// The path at which another node orders that this one copies its replica anew.
pub(super) const SEED_PATH: &str = "/cluster/v1/seed";
/// The time limit for a connection to a member.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The time limit for the beginning of a response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);
/// The time limit for the next part of a copy.
const STALLED_AFTER: Duration = Duration::from_secs(300);
/// The time without a sign of life of the member, or a part, after which its copy is given up: the
/// store may have no holder meanwhile.
const SILENT_AFTER: Duration = Duration::from_secs(20);
/// The time limit for a whole copy.
const COPIED_WITHIN: Duration = Duration::from_secs(6 * 3600);
/// The interval at which a waiting copy looks whether the node stops.
const LOOK: Duration = Duration::from_millis(200);
/// The interval between lines about the progress of a copy.
const SHOWN_EVERY: Duration = Duration::from_secs(30);
/// The maximum length of the message of a refusal.
const REFUSAL_BYTES_MAX: u64 = 2048;
const CHUNK_BYTES: usize = 256 << 10;
/// The number of chunks in memory.
const CHUNKS: usize = 4;

/// The parts of this node that copy a replica. Clones are cheap.
#[derive(Debug, Clone)]
pub struct Seeding {
    /// The name of this node.
    pub node: NodeName,
    /// The shard.
    pub shard: u16,
    /// The folder of the shard.
    pub folder: PathBuf,
    /// The addresses of all nodes.
    pub nodes: KnownNodes,
    /// The secret of the cluster.
    pub secret: KnownSecret,
    /// The metrics of the node.
    pub metrics: NodeMetrics,
    /// True when this node stops, so that a copy ends.
    pub ends: Arc<AtomicBool>,
}

impl Seeding {
    /// Replaces the files of the store in the data directory by those of a member that has what was
    /// cut, the most recent one first. The store is closed meanwhile.
    ///
    /// # Errors
    /// When no member has a replica that is new enough, or the copy failed. The files are
    /// unchanged.
    pub fn seed(&self, row: &ShardRow) -> Result<(), ShardFault> {
        let mut members: Vec<_> = row
            .members
            .iter()
            .filter(|(node, _)| **node != self.node && row.has_cut(node))
            .collect();
        members.sort_by_key(|(node, floor)| (std::cmp::Reverse(**floor), *node));
        let mut faults = Vec::new();
        for (node, _) in members {
            let watch = Stopwatch::start();
            match self.copy_from(node, row) {
                Ok(ReceivedCopy { through, files, bytes }) => {
                    let elapsed_ms = watch.elapsed().as_millis() as u64;
                    tracing::info!(
                        from = %node, through, files, bytes, elapsed_ms,
                        "received a copy of the replica"
                    );
                    return Ok(());
                }
                Err(fault) => faults.push(format!("{node}: {fault:#}")),
            }
            if self.ends.load(Ordering::Relaxed) {
                break;
            }
        }
        let cut = row.cut;
        if faults.is_empty() {
            faults.push("no other member has a replica that is new enough".to_owned());
        }
        Err(ShardFault(format!(
            "the log no longer has the records up to {cut}, and no member sent a copy: {}",
            faults.join("; ")
        )))
    }

    fn copy_from(&self, node: &NodeName, row: &ShardRow) -> anyhow::Result<ReceivedCopy> {
        let address = self.nodes.address(node).context("its address is not known yet")?;
        let secret = self.secret.get().context("the secret of the cluster is not known yet")?;
        let (shard, cut) = (self.shard, row.cut);
        tracing::info!(from = %node, address, shard, cut, "copying the replica of another node");
        let agent = agent()?;
        let request = agent.get(format!("{address}{SNAPSHOT_PATH}?shard={}", self.shard));
        let mut response = request.header("Authorization", secret.authorization()).call()?;
        let status = response.status();
        if status != 200 {
            let body = response.body_mut().with_config().limit(REFUSAL_BYTES_MAX).read_to_string();
            bail!("{status}: {}", refusal(&body.unwrap_or_default()));
        }
        let reader = response.into_body().into_with_config().limit(u64::MAX).reader();
        let (nodes, member) = (self.nodes.clone(), node.clone());
        let beat = Box::new(move || nodes.beat(&member));
        let mut chunks = Chunks::start(reader, self.ends.clone(), beat)?;
        let space = DiskSpace::of(&self.folder).context("read the size of the disk")?;
        let limits = CopyLimits { least_through: row.cut, bytes_max: space.total };
        let (watch, mut received, mut shown) = (Stopwatch::start(), 0, Stopwatch::start());
        let mut progress = |bytes| {
            received += bytes;
            self.metrics.shown.copy_received_bytes.inc_by(bytes);
            if shown.elapsed() >= SHOWN_EVERY {
                shown = Stopwatch::start();
                tracing::info!(from = %node, bytes = received, "copying the replica");
            }
            let is_over = watch.elapsed() > COPIED_WITHIN || self.ends.load(Ordering::Relaxed);
            if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        Ok(receive_copy(&self.folder, &mut chunks, limits, &mut progress)?)
    }
}

/// Returns a client of other nodes.
pub(super) fn agent() -> anyhow::Result<ureq::Agent> {
    let config = ureq::Agent::config_builder()
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .timeout_recv_response(Some(RESPONSE_TIMEOUT))
        .timeout_recv_body(Some(COPIED_WITHIN))
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .proxy(None)
        .accept_encoding("");
    Https::default().agent(config).map_err(anyhow::Error::msg)
}

/// Returns the message of a refusal by another node.
pub(super) fn refusal(body: &str) -> String {
    let answer = serde_json::from_str::<granary_protocol::ErrorAnswer>(body);
    answer.map_or_else(|_| "it is no node of a cluster".to_owned(), |answer| answer.message)
}

/// The body of a response, read by a thread of its own: a member whose machine is gone sends
/// nothing more, and the client would wait for it.
struct Chunks {
    parts: Receiver<io::Result<Vec<u8>>>,
    rest: io::Cursor<Vec<u8>>,
    ends: Arc<AtomicBool>,
    beat: Beat,
    /// True after the first part: the member has collected its files.
    has_begun: bool,
}

/// Returns the last sign of life of a member.
type Beat = Box<dyn Fn() -> Option<i64>>;

impl Chunks {
    fn start(
        mut reader: impl Read + Send + 'static,
        ends: Arc<AtomicBool>,
        beat: Beat,
    ) -> io::Result<Self> {
        let (sender, parts) = bounded(CHUNKS);
        let read = move || {
            loop {
                let mut chunk = vec![0; CHUNK_BYTES];
                let part = reader.read(&mut chunk).map(|count| {
                    chunk.truncate(count);
                    chunk
                });
                let is_last = part.as_ref().map_or(true, Vec::is_empty);
                // The receiver may have given up.
                if sender.send(part).is_err() || is_last {
                    return;
                }
            }
        };
        thread::Builder::new().name("seeding".to_owned()).spawn(read)?;
        Ok(Self { parts, rest: io::Cursor::default(), ends, beat, has_begun: false })
    }
}

impl Read for Chunks {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let (watch, mut silent, mut last) = (Stopwatch::start(), Stopwatch::start(), (self.beat)());
        while self.rest.position() == self.rest.get_ref().len() as u64 {
            match self.parts.recv_timeout(LOOK) {
                Ok(Ok(chunk)) if chunk.is_empty() => return Ok(0),
                Ok(chunk) => {
                    self.rest = io::Cursor::new(chunk?);
                    self.has_begun = true;
                }
                Err(RecvTimeoutError::Timeout) if self.ends.load(Ordering::Relaxed) => {
                    return Err(io::Error::other("this node stops"));
                }
                Err(RecvTimeoutError::Timeout) => {
                    if (self.beat)() != last {
                        (silent, last) = (Stopwatch::start(), (self.beat)());
                    }
                    let is_stalled = self.has_begun && watch.elapsed() > STALLED_AFTER;
                    if is_stalled || silent.elapsed() > SILENT_AFTER {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
            }
        }
        self.rest.read(out)
    }
}
