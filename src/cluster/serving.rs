//! The requests of other nodes: a copy of a replica of this node, and orders.
//!
//! All need the secret of the cluster. Must never know: users, keys.

use std::{
    io::{self, BufWriter, Write},
    pin::pin,
    thread,
    time::Duration,
};

use actix_web::{
    HttpRequest, HttpResponse,
    http::{StatusCode, header},
    web::{self, Query, ServiceConfig},
};
use bytes::Bytes;
use futures_util::stream;
use serde::Deserialize;
use serde_json::json;
use tokio::{
    sync::{
        OwnedSemaphorePermit,
        mpsc::{Sender, channel},
    },
    time::timeout,
};

use super::{
    control::{ClusterControl, HAND_OVER_PATH, OrderRefusal, Role, STRIKE_PATH},
    seed::{SEED_PATH, SNAPSHOT_PATH},
};
use crate::{
    clock::{Clock, Stopwatch, SystemClock},
    replication::NodeName,
};

/// The niceness that the thread of a copy adds.
const NICENESS: i32 = 10;
/// The time after which a receiver that takes nothing is given up.
const STALLED_AFTER: Duration = Duration::from_secs(300);
const CHUNK_BYTES: usize = 256 << 10;
/// The number of chunks in memory.
const CHUNKS: usize = 4;

/// Registers the routes for one HTTP worker.
pub fn routes(config: &mut ServiceConfig, control: &ClusterControl) {
    config.service(
        web::scope("/cluster/v1")
            .app_data(web::Data::new(control.clone()))
            .route(tail(SNAPSHOT_PATH), web::get().to(snapshot))
            .route(tail(SEED_PATH), web::post().to(seed))
            .route(tail(HAND_OVER_PATH), web::post().to(hand_over))
            .route(tail(STRIKE_PATH), web::post().to(strike)),
    );
}

/// The shard of a request; the first one for nodes of earlier releases.
#[derive(Debug, Deserialize)]
struct Target {
    #[serde(default)]
    shard: u16,
    #[serde(default)]
    node: String,
}

impl Target {
    /// Reads the parameters; those of an invalid request are of no shard.
    fn of(request: &HttpRequest) -> Self {
        let none = Self { shard: u16::MAX, node: String::new() };
        Query::from_query(request.query_string()).map_or(none, Query::into_inner)
    }
}

/// Returns a path below the scope.
fn tail(path: &'static str) -> &'static str {
    path.strip_prefix("/cluster/v1").unwrap_or(path)
}

fn error(status: StatusCode, word: &str, message: impl std::fmt::Display) -> HttpResponse {
    let (error, message) = (word.to_owned(), message.to_string());
    HttpResponse::build(status).json(granary_protocol::ErrorAnswer { error, message })
}

/// Refuses requests without the secret.
fn refusal(request: &HttpRequest, control: &ClusterControl) -> Option<HttpResponse> {
    let Some(secret) = control.node().secret().get() else {
        let message = "this node has not read the secret of the cluster yet";
        return Some(error(StatusCode::SERVICE_UNAVAILABLE, "not_ready", message));
    };
    let header = request.headers().get(header::AUTHORIZATION);
    let given = header.and_then(|value| value.to_str().ok()).unwrap_or_default();
    (!secret.admits(given)).then(|| {
        let message = "only nodes of this cluster may send this request";
        error(StatusCode::UNAUTHORIZED, "unauthorized", message)
    })
}

/// Streams a copy of this node's replica.
async fn snapshot(request: HttpRequest, control: web::Data<ClusterControl>) -> HttpResponse {
    if let Some(refusal) = refusal(&request, &control) {
        return refusal;
    }
    let Target { shard, .. } = Target::of(&request);
    let has_role = control.role(shard).is_some();
    // The lock of the replica can be held for long, as by the creation of files.
    let node = control.node().clone();
    let has_store = web::block(move || has_role && node.replica(shard).store().is_some()).await;
    if !matches!(has_store, Ok(true)) {
        let message = "this node has no replica at present";
        return error(StatusCode::SERVICE_UNAVAILABLE, "no_replica", message);
    }
    if !control.is_verified(shard) {
        let message = "this node has not found that its replica belongs to the log yet";
        return error(StatusCode::SERVICE_UNAVAILABLE, "not_verified", message);
    }
    let Ok(permit) = control.node().copies().clone().try_acquire_owned() else {
        let message = "this node sends a copy to another node at present";
        return error(StatusCode::SERVICE_UNAVAILABLE, "busy", message);
    };
    let peer = request.peer_addr().map(|peer| peer.to_string()).unwrap_or_default();
    let (sender, chunks) = channel(CHUNKS);
    let control = ClusterControl::clone(&control);
    let send = move || send_copy(&control, shard, &peer, &sender, permit);
    if let Err(cause) = thread::Builder::new().name("snapshot".to_owned()).spawn(send) {
        return error(StatusCode::SERVICE_UNAVAILABLE, "busy", cause);
    }
    let chunks = stream::unfold(chunks, |mut chunks| async {
        let chunk = chunks.recv().await?;
        Some((chunk, chunks))
    });
    HttpResponse::Ok().content_type("application/x-tar").streaming(chunks)
}

/// Sends a copy, and logs the outcome.
fn send_copy(
    control: &ClusterControl,
    shard: u16,
    to: &str,
    chunks: &Sender<io::Result<Bytes>>,
    _permit: OwnedSemaphorePermit,
) {
    let niceness = rustix::process::getpriority_process(None)
        .and_then(|niceness| rustix::process::setpriority_process(None, niceness + NICENESS));
    if let Err(cause) = niceness {
        tracing::debug!(%cause, "cannot lower the priority of a copy");
    }
    let watch = Stopwatch::start();
    tracing::info!(to, shard, "another node copies this replica");
    match write_copy(control, shard, chunks) {
        Ok((through, bytes)) => {
            control.node().metrics().shown.copies_sent.inc();
            let elapsed_ms = watch.elapsed().as_millis() as u64;
            tracing::info!(to, shard, through, bytes, elapsed_ms, "sent a copy of this replica");
        }
        Err(cause) => {
            tracing::warn!(to, cause = format!("{cause:#}"), "cannot send a copy of this replica");
            // The receiver must not take a part for the whole.
            let broken = io::Error::other("the copy failed");
            let runtime = control.node().runtime();
            drop(runtime.block_on(async { timeout(LOOK, chunks.send(Err(broken))).await }));
        }
    }
}

fn write_copy(
    control: &ClusterControl,
    shard: u16,
    chunks: &Sender<io::Result<Bytes>>,
) -> anyhow::Result<(u64, u64)> {
    let node = control.node();
    let role = control.role(shard);
    let is_over: &dyn Fn() -> bool = &|| role.as_ref().is_none_or(Role::is_over);
    let copy = {
        let store = node.replica(shard).store();
        let store = store.ok_or_else(|| anyhow::anyhow!("the store is closed"))?;
        store.prepare_copy(&node.folder(shard), SystemClock.moment(), is_over)?
    };
    let runtime = node.runtime().clone();
    let sent = &node.metrics().shown.copy_sent_bytes;
    let to = Chunked { chunks, runtime, sent, is_over };
    copy.write_to(BufWriter::with_capacity(CHUNK_BYTES, to))?;
    Ok((copy.through(), copy.bytes()))
}

/// A writer into the body of a response.
struct Chunked<'a> {
    chunks: &'a Sender<io::Result<Bytes>>,
    runtime: tokio::runtime::Handle,
    sent: &'a prometheus::IntCounter,
    /// Returns true when this node changes its role: its server waits for running requests.
    is_over: &'a dyn Fn() -> bool,
}

/// The interval at which a copy that waits looks whether it is over.
const LOOK: Duration = Duration::from_millis(500);

impl Write for Chunked<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut sent = pin!(self.chunks.send(Ok(Bytes::copy_from_slice(bytes))));
        let watch = Stopwatch::start();
        loop {
            if (self.is_over)() {
                return Err(io::Error::other("this node changes its role"));
            }
            match self.runtime.block_on(async { timeout(LOOK, &mut sent).await }) {
                Ok(Ok(())) => {
                    self.sent.inc_by(bytes.len() as u64);
                    return Ok(bytes.len());
                }
                Ok(Err(_)) => return Err(io::ErrorKind::BrokenPipe.into()),
                Err(_) if watch.elapsed() < STALLED_AFTER => {}
                Err(_) => return Err(io::ErrorKind::TimedOut.into()),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Answers an order of another node.
async fn answer_order(
    request: HttpRequest,
    control: web::Data<ClusterControl>,
    order: impl FnOnce(&ClusterControl, &Target) -> Result<(), OrderRefusal> + Send + 'static,
) -> HttpResponse {
    if let Some(refusal) = refusal(&request, &control) {
        return refusal;
    }
    let (target, node) = (Target::of(&request), control.name().to_string());
    match web::block(move || order(&control, &target)).await {
        Ok(Ok(())) => HttpResponse::Accepted().json(json!({ "node": node })),
        Ok(Err(fault)) => error(StatusCode::CONFLICT, "refused", fault),
        Err(cause) => error(StatusCode::SERVICE_UNAVAILABLE, "busy", cause),
    }
}

/// Lets this node copy its replica anew.
async fn seed(request: HttpRequest, control: web::Data<ClusterControl>) -> HttpResponse {
    answer_order(request, control, |control, target| control.begin_anew(target.shard)).await
}

/// Ends a lease of this node.
async fn hand_over(request: HttpRequest, control: web::Data<ClusterControl>) -> HttpResponse {
    answer_order(request, control, |control, target| control.hand_over_here(target.shard)).await
}

/// Removes a member of a shard that this node holds.
async fn strike(request: HttpRequest, control: web::Data<ClusterControl>) -> HttpResponse {
    let strike = |control: &ClusterControl, target: &Target| {
        let node = NodeName::parse(&target.node).map_err(OrderRefusal)?;
        control.strike_here(target.shard, &node)
    };
    answer_order(request, control, strike).await
}
