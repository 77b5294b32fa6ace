//! The collector: from a request's body to a durable answer.
//!
//! There is one on each HTTP worker. It decodes, resolves the series, checks each sample and
//! hands the batches to the writer.

use std::{cell::RefCell, rc::Rc, sync::Arc, time::Duration};

use actix::prelude::{Actor, Context, Handler, Message, ResponseFuture};
use bytes::Bytes;
use granary_protocol::{
    BatchView, DecodeError, IngestAnswer, JsonBatch, Unread, decode_batch, decode_json,
    encode_batch, split_batches,
};

use super::{Lifeline, TrustedClock, WriteFault, WriterHandle, foreign::ForeignMemory};
use crate::{
    ingest::{
        graphite::Template,
        memory::{HeldMemory, NoMemory, json_bytes},
        native::{Admitted, Sessions, Settled, UnknownRef},
        refusals::Refusals,
    },
    model::{AcceptedBatch, BatchVerdict, SeriesInfo, SeriesLimits, UnixMillis},
    policy::{Admission, RefusalReason},
    store::Store,
    telemetry::{Metrics, Protocol},
};

/// Times that a request's series are looked up while others are deleted or renamed; after that its
/// sender is asked to send it again.
const RESOLVE_ATTEMPTS: usize = 3;
const SERIES_CHANGE: &str = "series are deleted or renamed while they are looked up";

/// How the batches of a body are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// One BSON document after the other.
    Bson,
    /// A JSON object or array.
    Json,
}

/// A request's body.
#[derive(Debug, Message)]
#[rtype(result = "Result<IngestAnswer, CollectFault>")]
pub struct Collect {
    /// The bytes, decompressed.
    pub body: Bytes,
    /// How they are to be read.
    pub encoding: Encoding,
    /// What the body takes; grows with what it becomes.
    pub memory: HeldMemory,
}

/// Why a request was not accepted as a whole.
#[derive(Debug, thiserror::Error)]
pub enum CollectFault {
    /// It cannot be read.
    #[error(transparent)]
    Malformed(#[from] DecodeError),
    /// It defines more series than one request may.
    #[error(
        "{defined} series are defined in one request, more than {limit}: send fewer at a time or \
         raise limits.request_series_max"
    )]
    TooManySeries {
        /// Series that it defines.
        defined: usize,
        /// What is allowed.
        limit: usize,
    },
    /// It uses refs that are not known here.
    #[error(transparent)]
    UnknownRef(#[from] UnknownRef),
    /// There is no memory for what it becomes.
    #[error(transparent)]
    Memory(#[from] NoMemory),
    /// The store has as many senders as it may; what others of the request sent is accepted.
    #[error(
        "the store has as many senders as it may, and none was silent for limits.sender_idle: remove \
         some with `granary senders remove` or raise limits.senders_max"
    )]
    SenderLimit,
    /// It was not written.
    #[error(transparent)]
    Write(#[from] WriteFault),
}

/// What a collector is made of.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the types say it")]
pub struct CollectorParts {
    pub store: Store,
    pub writer: WriterHandle,
    pub clock: TrustedClock,
    pub metrics: Metrics,
    pub series_limits: SeriesLimits,
    pub sender_series_max: usize,
    pub series_max: usize,
    pub request_series_max: usize,
    pub future_skew: Duration,
    pub out_of_order_window: Duration,
    pub graphite_templates: Arc<[Template]>,
}

impl CollectorParts {
    /// Which samples are accepted now.
    pub(super) fn admission(&self) -> Admission {
        let future_skew_ms = self.future_skew.as_millis() as i64;
        Admission::new(self.store.granularities(), future_skew_ms, self.clock.moment())
    }
}

/// Takes requests of one HTTP worker.
#[derive(Debug)]
pub struct Collector {
    core: Rc<Core>,
    _lifeline: Lifeline,
}

#[derive(Debug)]
pub(super) struct Core {
    pub(super) parts: CollectorParts,
    sessions: RefCell<Sessions>,
    pub(super) foreign: ForeignMemory,
}

/// What is to be written of each batch of a request, and what is to be answered.
type Judged = (Vec<AcceptedBatch>, Vec<Asked>);

/// What a batch of a request asks for.
#[derive(Debug)]
struct Asked {
    /// 0 when it is not numbered.
    seq: u64,
    samples: u64,
    refused: Refusals,
}

impl Collector {
    /// Makes the role; nothing runs yet.
    pub fn new(parts: CollectorParts, lifeline: Lifeline) -> Self {
        let refs_max = parts.series_max.saturating_mul(2);
        let sessions = Sessions::new(parts.series_limits, parts.sender_series_max, refs_max);
        let sessions = RefCell::new(sessions);
        let core = Rc::new(Core { parts, sessions, foreign: ForeignMemory::default() });
        Self { core, _lifeline: lifeline }
    }

    pub(super) fn core(&self) -> Rc<Core> {
        self.core.clone()
    }
}

impl Actor for Collector {
    type Context = Context<Self>;
}

impl Handler<Collect> for Collector {
    type Result = ResponseFuture<Result<IngestAnswer, CollectFault>>;

    fn handle(&mut self, collect: Collect, _: &mut Self::Context) -> Self::Result {
        let core = self.core.clone();
        Box::pin(async move { core.collect(collect).await })
    }
}

impl Core {
    async fn collect(&self, collect: Collect) -> Result<IngestAnswer, CollectFault> {
        let now = self.parts.clock.now();
        let mut memory = collect.memory;
        // What is read becomes a batch and a record of the journal.
        memory.grow(match collect.encoding {
            Encoding::Bson => 2 * collect.body.len(),
            Encoding::Json => json_bytes(&collect.body),
        })?;
        let (body, unread, protocol) = match collect.encoding {
            Encoding::Bson => (collect.body, Vec::new(), Protocol::Native),
            Encoding::Json => {
                let (body, unread) = json_to_bson(&collect.body, now)?;
                (body, unread, Protocol::Json)
            }
        };
        let views = decode(&body)?;
        if self.parts.clock.is_doubted() {
            self.hear(&views, now);
        }
        let defined = views.iter().map(|view| view.series.len()).sum();
        let limit = self.parts.request_series_max;
        if defined > limit {
            return Err(CollectFault::TooManySeries { defined, limit });
        }
        let (batches, mut rest) = self.resolve(&views).await?;
        for (asked, unread) in rest.iter_mut().zip(unread) {
            asked.samples += unread.samples;
            asked.refused.add_unread(unread);
        }
        let verdicts = self.parts.writer.append(batches).await?;
        self.answer(protocol, verdicts, rest)
    }

    /// Resolves the series of all batches, and judges each sample. New series are made known,
    /// durably, before any sample of theirs is written. Meanwhile other requests may have changed
    /// the sessions, and series may be deleted or renamed: all is looked up again.
    async fn resolve(&self, views: &[BatchView<'_>]) -> Result<Judged, CollectFault> {
        let mut settled = Settled::new();
        for _ in 1..RESOLVE_ATTEMPTS {
            let (judged, unknown) = self.look_up(views, &settled)?;
            if unknown.is_empty() {
                return Ok(judged);
            }
            let keys: Vec<_> = unknown.iter().map(|own| own.key.clone()).collect();
            let verdicts = self.parts.writer.define(unknown).await?;
            settled.extend(keys.into_iter().zip(verdicts));
        }
        let (judged, unknown) = self.look_up(views, &settled)?;
        if unknown.is_empty() { Ok(judged) } else { Err(WriteFault::Busy(SERIES_CHANGE).into()) }
    }

    /// Judges the batches one by one, each right after its own definitions; stops at nothing but a
    /// ref that is not known, and judges no batch after a series that has to be made known.
    fn look_up(
        &self,
        views: &[BatchView<'_>],
        settled: &Settled,
    ) -> Result<(Judged, Vec<SeriesInfo>), UnknownRef> {
        let store = &self.parts.store;
        let admission = self.parts.admission();
        let mut judged = (Vec::with_capacity(views.len()), Vec::with_capacity(views.len()));
        let mut unknown = Vec::new();
        let mut sessions = self.sessions.borrow_mut();
        sessions.renew(&store.dictionary());
        let kind = |series| store.dictionary().kind(series);
        let name = |series| Some(store.dictionary().info(series)?.key.to_string());
        for view in views {
            if !view.series.is_empty() {
                unknown.extend(sessions.learn(view, &store.dictionary(), settled));
            }
            if unknown.is_empty() {
                let Admitted { batch, samples, refused } =
                    sessions.admit(view, &admission, kind, name)?;
                judged.0.push(batch);
                judged.1.push(Asked { seq: view.seq, samples, refused });
            }
        }
        Ok((judged, unknown))
    }

    /// Notes what the senders' clocks say. Times that they left to the daemon say nothing.
    fn hear(&self, views: &[BatchView<'_>], now: UnixMillis) {
        for view in views.iter().filter(|view| !view.agent.is_empty()) {
            let latest = || view.times().filter(|time| *time != now.0).max();
            if let Some(time) = Some(view.sent).filter(|sent| *sent != 0).or_else(latest) {
                self.parts.clock.hear(view.agent, UnixMillis(time));
            }
        }
    }

    fn answer(
        &self,
        protocol: Protocol,
        verdicts: Vec<BatchVerdict>,
        rest: Vec<Asked>,
    ) -> Result<IngestAnswer, CollectFault> {
        let mut answer = IngestAnswer::default();
        let mut without_room = None;
        // A request that is sent again must not count what it did not number.
        let may_repeat = rest.iter().all(|asked| asked.seq != 0);
        for (verdict, Asked { seq, samples, mut refused }) in verdicts.into_iter().zip(rest) {
            let all_for = |reason| Refusals::of_batch(reason, samples);
            match verdict {
                BatchVerdict::Accepted(_) | BatchVerdict::Empty => {
                    answer.accepted += samples - refused.total();
                }
                BatchVerdict::Duplicate => {
                    answer.duplicates += samples;
                    continue;
                }
                BatchVerdict::StaleNumber => refused = all_for(RefusalReason::StaleNumber),
                BatchVerdict::FarNumber => refused = all_for(RefusalReason::FarNumber),
                BatchVerdict::SenderLimit if may_repeat => {
                    without_room = Some(CollectFault::SenderLimit);
                    continue;
                }
                BatchVerdict::SenderLimit => refused = all_for(RefusalReason::SenderLimit),
            }
            if refused.is_for_number() {
                answer.renumber.push(seq);
            }
            self.count(protocol, &IngestAnswer::default(), &refused);
            refused.report(&mut answer);
        }
        self.count(protocol, &answer, &Refusals::default());
        without_room.map_or(Ok(answer), Err)
    }

    /// Counts what became of samples.
    pub(super) fn count(&self, protocol: Protocol, answer: &IngestAnswer, refused: &Refusals) {
        let metrics = &self.parts.metrics;
        let protocol = protocol.as_str();
        for (reason, count) in &refused.counts {
            let labels = [protocol, reason.as_str()];
            metrics.samples_refused.with_label_values(&labels).inc_by(*count);
        }
        metrics.samples_accepted.with_label_values(&[protocol]).inc_by(answer.accepted);
        metrics.samples_duplicate.with_label_values(&[protocol]).inc_by(answer.duplicates);
    }
}

/// JSON takes the same way as BSON: there is one path to test and to trust.
fn json_to_bson(body: &[u8], now: UnixMillis) -> Result<(Bytes, Vec<Unread>), DecodeError> {
    let mut bson = Vec::with_capacity(body.len());
    let mut all = Vec::new();
    for JsonBatch { batch, unread } in decode_json(body, now.0)? {
        encode_batch(&batch, &mut bson);
        all.push(unread);
    }
    Ok((bson.into(), all))
}

fn decode(body: &[u8]) -> Result<Vec<BatchView<'_>>, DecodeError> {
    let batches = split_batches(body)?;
    let several = batches.len() > 1;
    let place = |index: usize, cause: DecodeError| DecodeError {
        place: if several { format!("batch {index}: {}", cause.place) } else { cause.place },
        problem: cause.problem,
    };
    let decode_one = |(index, bytes)| decode_batch(bytes).map_err(|cause| place(index, cause));
    batches.into_iter().enumerate().map(decode_one).collect()
}
