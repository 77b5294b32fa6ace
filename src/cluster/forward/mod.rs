//! The forwarding of requests to the holder.
//!
//! A request and its response pass through as streams, with a few chunks in memory. The HTTP client
//! blocks, so each forwarded request has a thread meanwhile. Must never know: what requests mean.

mod body;
mod headers;
mod sending;

use std::{sync::Arc, time::Duration};

use actix_web::{
    HttpRequest, HttpResponse,
    http::{StatusCode, header},
    web,
};
use granary_https::Https;
use tokio::sync::Semaphore;

pub use headers::FORWARDED_SECRET;

use super::{answer, node::Node};
use crate::{
    clock::Stopwatch,
    replication::{NodeName, entry::STOPPED, runner::StatusReader},
};

/// The maximum number of requests that are forwarded at the same time. More are refused.
pub const FORWARDED_MAX: usize = 256;
/// The maximum number of requests without a body, such as tails, and of requests with one: neither
/// can use up the room of the others.
const FORWARDED_OF_A_KIND_MAX: usize = FORWARDED_MAX / 2;
/// The time limit for a connection to the holder.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// The time after which an unused connection is closed, before the holder closes it.
const IDLE_MAX: Duration = Duration::from_secs(30);
/// The shortest time limit for the next bytes of a connection; tails get some every 15 s.
const SILENT_MAX: Duration = Duration::from_secs(45);
/// The time for which the outcome of a probe is used.
const PROBED_FOR: Duration = Duration::from_secs(1);
/// The interval at which a forwarded request looks whether the holder is still the same.
const LOOK: Duration = Duration::from_millis(200);

/// The limits of forwarded requests.
#[derive(Debug, Clone, Copy)]
pub struct ForwardLimits {
    /// The maximum size of a body.
    pub body_bytes_max: usize,
    /// The time limit for a body.
    pub client_timeout: Duration,
    /// The time limit for the beginning of the response.
    pub response_timeout: Duration,
}

/// The client of requests to the holder. Clones are cheap.
#[derive(Debug, Clone)]
pub struct Forwarder {
    node: Node,
    /// The status of the node's replica.
    status: StatusReader,
    /// True if connections to this node are encrypted.
    is_encrypted: bool,
    agent: ureq::Agent,
    /// The permits of requests without a body.
    permits: Arc<Semaphore>,
    /// The permits of requests with a body.
    permits_of_bodies: Arc<Semaphore>,
    limits: ForwardLimits,
    /// The last probe of the holder: its address, its time and its outcome.
    probe: Arc<tokio::sync::Mutex<Option<(String, Stopwatch, bool)>>>,
}

impl Forwarder {
    /// Creates a client.
    ///
    /// # Errors
    /// When the certificates of this machine cannot be read.
    pub fn new(
        node: Node,
        status: StatusReader,
        is_encrypted: bool,
        limits: ForwardLimits,
    ) -> Result<Self, String> {
        let config = ureq::Agent::config_builder()
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_recv_response(Some(limits.response_timeout))
            .timeout_per_read(Some(limits.response_timeout.max(SILENT_MAX)))
            .timeout_per_write(Some(SILENT_MAX))
            .max_idle_age(IDLE_MAX)
            .max_idle_connections(FORWARDED_MAX)
            .max_idle_connections_per_host(FORWARDED_MAX)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .allow_non_standard_methods(true)
            .proxy(None)
            .accept("")
            .accept_encoding("")
            .user_agent("");
        let agent = Https::default().agent(config)?;
        let permits = || Arc::new(Semaphore::new(FORWARDED_OF_A_KIND_MAX));
        let (permits, permits_of_bodies) = (permits(), permits());
        let probe = Arc::default();
        Ok(Self { node, status, is_encrypted, agent, permits, permits_of_bodies, limits, probe })
    }

    /// Returns the holder and its address; `None` if no other node holds the store.
    pub(super) fn holder(&self) -> Option<(NodeName, String)> {
        let row = self.status.get().row?;
        let holder = row.holder.filter(|holder| *holder != self.node.parts().node)?;
        let address = self.node.nodes().address(&holder).filter(|_| row.beat != STOPPED)?;
        Some((holder, address))
    }

    /// Returns true if another node still holds the store.
    fn is_holder(&self, node: &NodeName) -> bool {
        self.holder().is_some_and(|(now, _)| now == *node)
    }

    /// Returns true if the server at an address answers. One probe runs at a time, and its outcome
    /// is used for a second.
    pub async fn is_reachable(&self, address: String) -> bool {
        let mut probe = self.probe.lock().await;
        if let Some((probed, watch, answers)) = &*probe
            && *probed == address
            && watch.elapsed() < PROBED_FOR
        {
            return *answers;
        }
        let (this, probed) = (self.clone(), address.clone());
        let answers = web::block(move || this.probe(&probed)).await.unwrap_or(false);
        *probe = Some((address, Stopwatch::start(), answers));
        answers
    }

    fn probe(&self, address: &str) -> bool {
        let request = self.agent.get(format!("{address}/healthz"));
        let request = request.config().timeout_global(Some(CONNECT_TIMEOUT)).build();
        request.call().is_ok_and(|response| response.status() == 200)
    }
}

fn unavailable(forwarder: &Forwarder, message: &str) -> HttpResponse {
    forwarder.node.metrics().shown.not_forwarded.inc();
    answer::error(StatusCode::SERVICE_UNAVAILABLE, "no_holder", message)
}

/// Forwards a request to the holder, and returns its response.
pub(super) async fn forward(
    request: HttpRequest,
    payload: web::Payload,
    forwarder: web::Data<Forwarder>,
) -> HttpResponse {
    if request.headers().contains_key(headers::FORWARDED) {
        return unavailable(
            &forwarder,
            "the node that should hold the store does not hold it yet; retry",
        );
    }
    let Some((holder, address)) = forwarder.holder() else {
        return unavailable(&forwarder, "no node holds the store at present; retry");
    };
    let limits = forwarder.limits;
    let length = headers::content_length(request.headers());
    if length.is_some_and(|length| length > limits.body_bytes_max as u64) {
        let limit = limits.body_bytes_max;
        let message = format!("more than {limit} bytes: send smaller requests");
        return answer::error(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message);
    }
    let has_body = length.is_some_and(|length| length > 0)
        || request.headers().contains_key(header::TRANSFER_ENCODING);
    let permits = if has_body { &forwarder.permits_of_bodies } else { &forwarder.permits };
    let Ok(permit) = permits.clone().try_acquire_owned() else {
        return unavailable(&forwarder, "this node forwards too many requests at present; retry");
    };
    let Some(secret) = forwarder.node.secret().get() else {
        return unavailable(
            &forwarder,
            "this node has not read the secret of the cluster yet; retry",
        );
    };
    let node = forwarder.node.parts().node.as_str();
    let outgoing = headers::outgoing(&request, &address, (node, forwarder.is_encrypted, secret));
    let (incoming, fault) = body::incoming(payload, has_body, limits);
    let agent = forwarder.agent.clone();
    let mut sent = sending::send(agent, outgoing, incoming, permit);
    let head = loop {
        tokio::select! {
            head = &mut sent => break head,
            () = tokio::time::sleep(LOOK) => {
                if !forwarder.is_holder(&holder) {
                    return unavailable(&forwarder, "the node that held the store does not answer; retry");
                }
            }
        }
    };
    if let Some((status, word, message)) = fault.get() {
        return answer::error(status, word, message);
    }
    match head {
        Ok(Ok(received)) => {
            forwarder.node.metrics().shown.forwarded.inc();
            let forwarder = forwarder.clone();
            received.into_response(move || forwarder.is_holder(&holder))
        }
        Ok(Err(fault)) => {
            tracing::debug!(%holder, fault, "cannot forward a request to the holder");
            unavailable(&forwarder, "the node that holds the store does not answer; retry")
        }
        Err(_) => unavailable(&forwarder, "this node is stopping; retry"),
    }
}
