//! The collector's way for foreign protocols: decode, make new series known, judge, write.

use std::cell::RefCell;

use actix::prelude::{Handler, Message, ResponseFuture};
use bytes::Bytes;
use granary_protocol::IngestAnswer;

use super::{
    collector::{Collector, Core},
    writer::WriteFault,
};
use crate::{
    ingest::{
        collectd, graphite,
        influx::{self, Precision},
        memory::{HeldMemory, NoMemory, json_bytes},
        otlp::{self, Form},
        remote_write::{self, Contents, Families, Version},
        rows::{Excess, Rows},
        series_cache::SeriesCache,
    },
    model::{BatchVerdict, SeriesKey},
    policy::RefusalReason,
    telemetry::Protocol,
};

/// How the body of a foreign sender is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Foreign {
    /// Prometheus remote write, decompressed.
    RemoteWrite(Version),
    /// InfluxDB line protocol.
    Influx(Precision),
    /// OTLP metrics.
    Otlp(Form),
    /// Whole lines of Graphite's plaintext protocol.
    GraphiteLines,
    /// One message of Graphite's pickle protocol, without its length.
    GraphitePickle,
    /// Value lists of collectd as JSON.
    Collectd,
}

impl Foreign {
    fn is_json(self) -> bool {
        matches!(self, Self::Otlp(Form::Json) | Self::Collectd)
    }

    /// The name under which its samples are counted.
    pub fn protocol(self) -> Protocol {
        match self {
            Self::RemoteWrite(_) => Protocol::RemoteWrite,
            Self::Influx(_) => Protocol::Influx,
            Self::Otlp(_) => Protocol::Otlp,
            Self::GraphiteLines | Self::GraphitePickle => Protocol::Graphite,
            Self::Collectd => Protocol::Collectd,
        }
    }
}

/// A request of a foreign sender.
#[derive(Debug, Message)]
#[rtype(result = "Result<ForeignAnswer, ForeignFault>")]
pub struct CollectForeign {
    /// The bytes, decompressed.
    pub body: Bytes,
    /// How they are to be read.
    pub foreign: Foreign,
    /// Whose new series are counted.
    pub sender: Box<str>,
    /// What the body takes; grows with what it becomes.
    pub memory: Option<HeldMemory>,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ForeignAnswer {
    /// Samples by their fate.
    pub answer: IngestAnswer,
    /// What the body held.
    pub contents: Contents,
}

/// Why a request was not accepted as a whole.
#[derive(Debug, thiserror::Error)]
pub enum ForeignFault {
    /// It cannot be read.
    #[error("{0}")]
    Malformed(String),
    /// It brings more new series than one request may.
    #[error(
        "more than {0} new series in one request: send fewer at a time or raise \
         limits.request_series_max"
    )]
    TooManySeries(usize),
    /// There is no memory for what it becomes.
    #[error(transparent)]
    Memory(#[from] NoMemory),
    /// It was not written.
    #[error(transparent)]
    Write(#[from] WriteFault),
}

/// What one collector remembers of foreign senders.
#[derive(Debug, Default)]
pub(super) struct ForeignMemory {
    cache: RefCell<SeriesCache>,
    families: RefCell<Families>,
}

impl Handler<CollectForeign> for Collector {
    type Result = ResponseFuture<Result<ForeignAnswer, ForeignFault>>;

    fn handle(&mut self, request: CollectForeign, _: &mut Self::Context) -> Self::Result {
        let core = self.core();
        Box::pin(async move { core.collect_foreign(request).await })
    }
}

impl Core {
    fn decode(
        &self,
        foreign: Foreign,
        body: &[u8],
        rows: &mut Rows<'_>,
    ) -> Result<Contents, String> {
        match foreign {
            Foreign::RemoteWrite(version) => {
                let mut families = self.foreign.families.borrow_mut();
                remote_write::decode(version, body, &mut families, rows)
                    .map_err(|fault| fault.to_string())
            }
            Foreign::Influx(precision) => {
                let now = self.parts.clock.now();
                influx::decode(body, precision, now, rows).map(|()| Contents::default())
            }
            Foreign::Otlp(form) => otlp::decode(form, body, rows).map(|()| Contents::default()),
            Foreign::GraphiteLines => {
                let now = self.parts.clock.now();
                graphite::decode_lines(body, &self.parts.graphite_templates, now, rows);
                Ok(Contents::default())
            }
            Foreign::GraphitePickle => {
                let now = self.parts.clock.now();
                graphite::decode_pickle(body, &self.parts.graphite_templates, now, rows)
                    .map(|()| Contents::default())
            }
            Foreign::Collectd => collectd::decode(body, rows).map(|()| Contents::default()),
        }
    }

    async fn collect_foreign(
        &self,
        request: CollectForeign,
    ) -> Result<ForeignAnswer, ForeignFault> {
        let CollectForeign { body, foreign, sender, mut memory } = request;
        if let Some(memory) = &mut memory
            && foreign.is_json()
        {
            memory.grow(json_bytes(&body))?;
        }
        let parts = &self.parts;
        let remembered = &self.foreign;
        let (decoded, contents) = {
            let mut cache = remembered.cache.borrow_mut();
            cache.trim(parts.series_max);
            cache.renew(parts.store.dictionary().generation());
            let find = |key: &SeriesKey| parts.store.dictionary().find(key).map(|(id, _)| id);
            let mut rows = Rows::new(&mut cache, &find, &parts.series_limits, &sender)
                .within(parts.request_series_max, memory.as_mut());
            let contents =
                self.decode(foreign, &body, &mut rows).map_err(ForeignFault::Malformed)?;
            (rows.finish(), contents)
        };
        drop(body);
        match decoded.excess {
            None => {}
            Some(Excess::Series) => {
                return Err(ForeignFault::TooManySeries(parts.request_series_max));
            }
            Some(Excess::Memory(cause)) => return Err(cause.into()),
        }
        let definitions = decoded.definitions();
        let verdicts = if definitions.is_empty() {
            Vec::new()
        } else {
            parts.writer.define(definitions).await?
        };
        let admission = parts.admission();
        let window_ms = parts.out_of_order_window.as_millis().max(1) as i64;
        let (batch, mut refused) = {
            let mut cache = remembered.cache.borrow_mut();
            let kind = |series| parts.store.dictionary().kind(series);
            decoded.admit(&verdicts, &mut cache, &admission, kind, window_ms)
        };
        let mut answer = IngestAnswer::default();
        if !batch.values.is_empty() {
            let samples = batch.values.len() as u64;
            let verdicts = parts.writer.append(vec![batch]).await?;
            if let Some(BatchVerdict::Accepted(tally)) = verdicts.first() {
                answer.duplicates = tally.duplicates;
                answer.accepted = samples - tally.duplicates - tally.out_of_order;
                let reason = RefusalReason::OutOfOrder;
                refused.add_many(reason, tally.out_of_order, || reason.remedy().to_owned());
            }
        }
        self.count(foreign.protocol(), &answer, &refused);
        refused.report(&mut answer);
        Ok(ForeignAnswer { answer, contents })
    }
}
