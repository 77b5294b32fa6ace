//! The collector: from a request's body to a durable response.
//!
//! Each HTTP worker has a collector; large bodies, Graphite and the daemon's own samples have one
//! each. A collector decodes the body, resolves the series, judges each sample and passes batches
//! to the writer. Must never know: the encoding of protocols, HTTP.

mod answers;
mod batches;
mod others;
mod parts;
mod replacing;
mod rows;
mod spreading;
mod tally;

use std::rc::Rc;

use actix::prelude::{Actor, Context, Handler, ResponseFuture};
use granary_protocol::IngestAnswer;

pub use answers::{CollectFault, RowsAnswer, ShardRefusal};
pub use batches::CollectBatches;
pub use others::{OtherShards, Sending, SentBatches, SentRows};
pub use parts::{CollectorParts, CollectorSettings, SharedDiskQuota, SharedQuota, protocol_label};
pub use rows::CollectRows;
pub use tally::{IngestTally, RefusedSample, SenderSamples};

use super::Lifeline;
use batches::BatchCollector;
use rows::RowCollector;

/// The role: handles the ingest requests of one HTTP worker, of large bodies, of Graphite, or of
/// the daemon itself.
#[derive(Debug)]
pub struct Collector {
    core: Rc<Core>,
    _lifeline: Lifeline,
}

#[derive(Debug)]
struct Core {
    parts: CollectorParts,
    batches: BatchCollector,
    rows: RowCollector,
}

impl Collector {
    /// Creates the role without starting it.
    pub fn new(parts: CollectorParts, lifeline: Lifeline) -> Self {
        let (batches, rows) = (BatchCollector::new(&parts), RowCollector::new(&parts));
        Self { core: Rc::new(Core { parts, batches, rows }), _lifeline: lifeline }
    }
}

impl Actor for Collector {
    type Context = Context<Self>;
}

impl Handler<CollectBatches> for Collector {
    type Result = ResponseFuture<Result<IngestAnswer, CollectFault>>;

    fn handle(&mut self, request: CollectBatches, _: &mut Self::Context) -> Self::Result {
        let core = self.core.clone();
        Box::pin(async move { core.batches.collect(request, &core.parts).await })
    }
}

impl Handler<CollectRows> for Collector {
    type Result = ResponseFuture<Result<RowsAnswer, CollectFault>>;

    fn handle(&mut self, request: CollectRows, _: &mut Self::Context) -> Self::Result {
        let core = self.core.clone();
        Box::pin(async move { core.rows.collect(request, &core.parts).await })
    }
}
