//! The self-sampler: stores the daemon's own metrics like an agent's samples.
//!
//! Each round is a numbered batch that is sent once: a round that is refused or lost is dropped,
//! and the running totals of the next round include its growth. Nothing counts twice, and no sender
//! waits. Must never know: the metrics, the storage of samples.

use std::{collections::BTreeMap, time::Duration};

use actix::{
    Actor, ActorContext, ActorFutureExt, Addr, AsyncContext, Context, Handler, SpawnHandle,
    WrapFuture,
};
use serde_json::json;

use super::{CollectBatches, Collector, Lifeline, SettingsChanged, Stop};
use crate::{
    ingest::{memory::IngestMemory, protocol::BatchEncoding},
    kept::LiveValue,
    model::{UnixMillis, own_sender},
    telemetry::{Health, SelfReading, Shortfall},
};

/// The role in the sender's name.
const ROLE: &str = "self";
/// The memory limit of a round.
const MEMORY_BYTES: usize = 1 << 20;

/// The function that reads the daemon's own metrics.
pub type ReadOwnMetrics = Box<dyn Fn() -> Vec<SelfReading>>;

/// The parts of the sampler.
#[expect(missing_docs, reason = "the types describe the fields")]
pub struct SelfSamplerParts {
    pub read: ReadOwnMetrics,
    pub collector: Addr<Collector>,
    pub lifeline: Lifeline,
    pub health: Health,
    /// The tag `host` of the series.
    pub host: String,
    /// The time between two rounds; `None` while the daemon is not sampled.
    pub interval: LiveValue<Option<Duration>>,
    /// The start of the daemon, from which its counters count.
    pub started: UnixMillis,
}

/// The actor of this role.
pub struct SelfSampler {
    parts: SelfSamplerParts,
    memory: IngestMemory,
    /// The number of the last round.
    seq: u64,
    /// True while a round is in flight; further rounds are dropped meanwhile.
    is_under_way: bool,
    is_failing: bool,
    /// The scheduled round.
    next: Option<SpawnHandle>,
}

impl SelfSampler {
    /// Creates the role without starting it.
    pub fn new(parts: SelfSamplerParts) -> Self {
        let memory = IngestMemory::new(MEMORY_BYTES);
        Self { parts, memory, seq: 0, is_under_way: false, is_failing: false, next: None }
    }

    /// Returns a round as an agent would send it. It contains no times: otherwise, the daemon's
    /// clock would confirm itself, as the clock of a sender does.
    fn batch(&mut self) -> Vec<u8> {
        self.seq += 1;
        let started = self.parts.started.0;
        let samples: Vec<_> = (self.parts.read)()
            .into_iter()
            .map(|reading| {
                let mut tags: BTreeMap<_, _> = reading.labels.into_iter().collect();
                tags.insert("host".to_owned(), self.parts.host.clone());
                let SelfReading { name, unit, is_counter, value, .. } = reading;
                let kind = if is_counter { "counter" } else { "gauge" };
                let mut sample = json!({ "metric": name, "tags": tags, "kind": kind, "unit": unit,
                    "value": value });
                if is_counter {
                    sample["start"] = started.into();
                }
                sample
            })
            .collect();
        let batch = json!({ "agent": &*own_sender(ROLE), "epoch": started, "seq": self.seq, "samples": samples });
        batch.to_string().into_bytes()
    }

    fn sample(&mut self, ctx: &mut Context<Self>) {
        if self.is_under_way {
            return;
        }
        let Ok(memory) = self.memory.reserve(0) else { return };
        let body = self.batch().into();
        let round = CollectBatches {
            body,
            encoding: BatchEncoding::Json,
            decoded: None,
            is_own: true,
            senders: None,
            memory,
        };
        self.is_under_way = true;
        let response = self.parts.collector.send(round).into_actor(self);
        ctx.spawn(response.map(|answer, role, _| {
            role.is_under_way = false;
            let fault = match answer {
                Ok(Ok(answer)) if answer.refused.is_empty() => None,
                Ok(Ok(answer)) => Some(format!("refused: {:?}", answer.refused)),
                Ok(Err(fault)) => Some(fault.to_string()),
                Err(fault) => Some(fault.to_string()),
            };
            if let Some(cause) = fault.as_ref().filter(|_| !role.is_failing) {
                tracing::warn!(cause, "the daemon's own samples were dropped");
            }
            role.is_failing = fault.is_some();
            role.parts.health.set_shortfall(Shortfall::OwnSamples, &own_sender(ROLE), fault);
        }));
    }
}

impl SelfSampler {
    /// Replaces the scheduled round.
    fn schedule(&mut self, ctx: &mut Context<Self>) {
        if let Some(next) = self.next.take() {
            ctx.cancel_future(next);
        }
        let Some(interval) = *self.parts.interval.get() else { return };
        self.next = Some(ctx.run_later(interval, |role, ctx| {
            role.next = None;
            role.sample(ctx);
            role.schedule(ctx);
        }));
    }
}

impl Actor for SelfSampler {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.schedule(ctx);
    }
}

impl Handler<SettingsChanged> for SelfSampler {
    type Result = ();

    fn handle(&mut self, _: SettingsChanged, ctx: &mut Self::Context) {
        self.schedule(ctx);
    }
}

impl Handler<Stop> for SelfSampler {
    type Result = ();

    fn handle(&mut self, _: Stop, ctx: &mut Self::Context) {
        self.parts.lifeline.release();
        ctx.stop();
    }
}
