//! The way to the holders of the other shards, this node or others.
//!
//! Must never know: how a request was split, how a shard stores its part.

use std::{io::Read, sync::Arc, time::Duration};

use bytes::Bytes;
use granary_https::Https;
use granary_protocol::{ErrorAnswer, IngestAnswer};
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;

use super::{
    asking,
    held::HeldShards,
    wire::{BatchesQuery, SentRowsAnswer},
};
use crate::{
    actors::{
        CollectBatches, CollectFault, CollectRows, OtherShards, RowsAnswer, Sending, SentBatches,
        SentRows, ShardRefusal, WriteFault,
    },
    cluster::{ClusterControl, Place},
    ingest::protocol::RowProtocol,
    model::ProjectName,
    query::{self, ErrorOfShard, OverBudget, QueryError, ReserveBytes},
};

/// The time limit for a connection to another node.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// The time limit for the response of another node to samples.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);
/// The time after which an unused connection is closed, before the other node closes it.
const IDLE_MAX: Duration = Duration::from_secs(30);
/// The maximum number of requests to other nodes at the same time. More are refused.
const SENT_MAX: usize = 256;
/// The time by which an answer to a question may come later than its time limit.
const ASK_MARGIN: Duration = Duration::from_secs(1);
/// The maximum size of an answer to a question.
const CELLS_BYTES_MAX: u64 = 1 << 30;
/// The smallest part of an answer of unknown size for which memory is reserved.
const READ_BYTES_MIN: usize = 64 << 10;
/// The maximum size of an answer.
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// The way to the holders of the other shards. Clones are cheap.
#[derive(Debug, Clone)]
pub struct ShardRouter {
    control: ClusterControl,
    held: HeldShards,
    count: u16,
    agent: ureq::Agent,
    permits: Arc<Semaphore>,
}

/// A request to another node.
struct Outgoing {
    shard: u16,
    url: String,
    query: Vec<(&'static str, String)>,
    authorization: String,
    body: Bytes,
}

impl ShardRouter {
    /// Creates the way to `count` shards.
    ///
    /// # Errors
    /// When the certificates of this machine cannot be read.
    pub fn new(control: ClusterControl, held: HeldShards, count: u16) -> Result<Self, String> {
        let config = ureq::Agent::config_builder()
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_send_body(Some(RESPONSE_TIMEOUT))
            .timeout_recv_response(Some(RESPONSE_TIMEOUT))
            .timeout_recv_body(Some(RESPONSE_TIMEOUT))
            .max_idle_age(IDLE_MAX)
            .max_idle_connections(SENT_MAX)
            .max_idle_connections_per_host(SENT_MAX)
            .max_redirects(0)
            .http_status_as_error(false)
            .proxy(None)
            .accept_encoding("");
        let agent = Https::default().agent(config)?;
        Ok(Self { control, held, count, agent, permits: Arc::new(Semaphore::new(SENT_MAX)) })
    }

    /// Sends a part to another node, and reads its answer.
    async fn send<A: DeserializeOwned + Send + 'static>(
        &self,
        (shard, path): (u16, &str),
        (address, authorization): (String, String),
        query: Vec<(&'static str, String)>,
        body: Bytes,
    ) -> Result<A, CollectFault> {
        let Ok(permit) = self.permits.clone().try_acquire_owned() else {
            return Err(WriteFault::Busy("this node sends too many parts to other nodes").into());
        };
        let url = format!("{address}/shards/v1/{shard}/{path}");
        let outgoing = Outgoing { shard, url, query, authorization, body };
        let agent = self.agent.clone();
        let sent = self.control.run(move || {
            let _permit = permit;
            post(&agent, &outgoing)
        });
        sent.await.unwrap_or_else(|cause| Err(unavailable(shard, &cause.to_string())))
    }
}

fn unavailable(shard: u16, why: &str) -> CollectFault {
    WriteFault::NoLog(format!("shard {shard} is not available at present: {why}; retry")).into()
}

/// Posts a part. It blocks.
fn post<A: DeserializeOwned>(agent: &ureq::Agent, outgoing: &Outgoing) -> Result<A, CollectFault> {
    let Outgoing { shard, url, query, authorization, body } = outgoing;
    let query = query.iter().map(|(name, value)| (*name, value.as_str()));
    let request = agent.post(url).query_pairs(query).header("Authorization", authorization);
    let response = request.content_type("application/octet-stream").send(&**body);
    let mut response = response.map_err(|cause| unavailable(*shard, &cause.to_string()))?;
    let status = response.status().as_u16();
    let text = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_string();
    let text = text.map_err(|cause| unavailable(*shard, &cause.to_string()))?;
    if status == 200 {
        return serde_json::from_str(&text)
            .map_err(|cause| unavailable(*shard, &format!("its answer is damaged: {cause}")));
    }
    let ErrorAnswer { error, message } = serde_json::from_str(&text)
        .map_err(|_| unavailable(*shard, &format!("its holder answered {status}")))?;
    // The request reached a node that does not know the secret or the shard (yet).
    if matches!(status, 401 | 404) {
        return Err(unavailable(*shard, &message));
    }
    Err(ShardRefusal { shard: *shard, status, error, message }.into())
}

impl query::OtherShards for ShardRouter {
    fn count(&self) -> usize {
        usize::from(self.count).saturating_sub(1)
    }

    fn ask(
        &self,
        project: &str,
        question: (&str, &[u8]),
        time_max: Duration,
        reserve: &ReserveBytes<'_>,
    ) -> Result<Vec<Vec<u8>>, QueryError> {
        let ask = |shard| self.ask_one((shard, project), question, time_max, reserve);
        std::thread::scope(|scope| {
            let asked: Vec<_> =
                (1..self.count).map(|shard| scope.spawn(move || ask(shard))).collect();
            let answer = |asked: std::thread::ScopedJoinHandle<'_, _>| {
                asked
                    .join()
                    .unwrap_or_else(|_| Err(QueryError::Busy("a query panicked".to_owned())))
            };
            asked.into_iter().map(answer).collect()
        })
    }
}

impl ShardRouter {
    /// Asks one shard. It blocks.
    fn ask_one(
        &self,
        (shard, project): (u16, &str),
        (kind, question): (&str, &[u8]),
        time_max: Duration,
        reserve: &ReserveBytes<'_>,
    ) -> Result<Vec<u8>, QueryError> {
        let missing = |why: &dyn std::fmt::Display| {
            QueryError::Busy(format!("shard {shard} does not answer at present ({why}); retry"))
        };
        let (address, authorization) = match self.control.place(shard) {
            None => return Err(missing(&"no node holds it")),
            Some(Place::Here) => {
                let held = self.held.project(shard, project);
                let held = held.ok_or_else(|| missing(&"this node begins to hold it"))?;
                let answer = asking::answer(&self.held, &held, kind, question, time_max)?;
                // The lease must outlast the reading.
                self.held.project(shard, project).ok_or_else(|| missing(&"it has moved"))?;
                check_reserved(reserve(answer.bytes.len()))?;
                return Ok(answer.bytes);
            }
            Some(Place::There { address, authorization }) => (address, authorization),
        };
        let request = self.agent.post(format!("{address}/shards/v1/{shard}/ask"));
        let request = request.query("project", project).query("kind", kind);
        let request = request.query("time_ms", time_max.as_millis().to_string());
        let request = request.header("Authorization", authorization);
        let request = request.config().timeout_global(Some(time_max + ASK_MARGIN)).build();
        let mut response = request.send(question).map_err(|cause| missing(&cause))?;
        let body = read_within(response.body_mut(), reserve, &missing)?;
        match response.status().as_u16() {
            200 => Ok(body),
            status => {
                let fault: ErrorOfShard = serde_json::from_slice(&body)
                    .map_err(|_| missing(&format!("its holder answered {status}")))?;
                Err(fault.into())
            }
        }
    }
}

fn check_reserved(is_reserved: bool) -> Result<(), OverBudget> {
    if is_reserved { Ok(()) } else { Err(OverBudget::Memory) }
}

/// Reads an answer, and reserves its memory before.
fn read_within(
    body: &mut ureq::Body,
    reserve: &ReserveBytes<'_>,
    missing: &dyn Fn(&dyn std::fmt::Display) -> QueryError,
) -> Result<Vec<u8>, QueryError> {
    if body.content_length().is_some_and(|length| length > CELLS_BYTES_MAX) {
        return Err(missing(&format_args!("its answer is larger than {CELLS_BYTES_MAX} bytes")));
    }
    // Without a length, each read doubles the memory.
    let length = body.content_length().map(|length| length as usize);
    let mut reader = body.with_config().limit(CELLS_BYTES_MAX).reader();
    let mut bytes = Vec::new();
    loop {
        let room = length.unwrap_or_else(|| bytes.len().max(READ_BYTES_MIN));
        check_reserved(reserve(room))?;
        bytes.reserve_exact(room);
        let read = reader.by_ref().take(room as u64).read_to_end(&mut bytes);
        let read = read.map_err(|cause| missing(&cause))?;
        if read < room || length.is_some() {
            return Ok(bytes);
        }
    }
}

impl OtherShards for ShardRouter {
    fn count(&self) -> u16 {
        self.count
    }

    fn send_batches(
        &self,
        shard: u16,
        of: &ProjectName,
        batches: SentBatches,
    ) -> Sending<IngestAnswer> {
        let (this, of) = (self.clone(), of.to_string());
        Box::pin(async move {
            let SentBatches { body, encoding, replace } = batches;
            match this.control.place(shard) {
                None => Err(unavailable(shard, "no node holds it")),
                Some(Place::There { address, authorization }) => {
                    let query = BatchesQuery::new(of, encoding, replace).pairs();
                    this.send((shard, "batches"), (address, authorization), query, body).await
                }
                Some(Place::Here) => {
                    let Some(project) = this.held.project(shard, &of) else {
                        return Err(unavailable(shard, "this node begins to hold it"));
                    };
                    let memory = this.held.bodies().reserve(body.len())?;
                    let (decoded, is_own, senders) = (Some(replace), false, None);
                    let collect =
                        CollectBatches { body, encoding, decoded, is_own, senders, memory };
                    let sent = project.collector.send(collect).await;
                    sent.map_err(|cause| unavailable(shard, &cause.to_string()))?
                }
            }
        })
    }

    fn send_rows(&self, shard: u16, of: &ProjectName, rows: SentRows) -> Sending<RowsAnswer> {
        let (this, of) = (self.clone(), of.to_string());
        Box::pin(async move {
            let SentRows { body, sender } = rows;
            match this.control.place(shard) {
                None => Err(unavailable(shard, "no node holds it")),
                Some(Place::There { address, authorization }) => {
                    let query = vec![("project", of), ("sender", sender.into())];
                    let answer: SentRowsAnswer =
                        this.send((shard, "rows"), (address, authorization), query, body).await?;
                    Ok(answer.into())
                }
                Some(Place::Here) => {
                    let Some(project) = this.held.project(shard, &of) else {
                        return Err(unavailable(shard, "this node begins to hold it"));
                    };
                    let memory = Some(this.held.bodies().reserve(body.len())?);
                    let protocol = RowProtocol::Part;
                    let sent =
                        project.collector.send(CollectRows { body, protocol, sender, memory });
                    let sent = sent.await;
                    sent.map_err(|cause| unavailable(shard, &cause.to_string()))?
                }
            }
        })
    }
}
