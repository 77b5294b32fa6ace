//! The running roles: thin shells over pure logic. Only this folder uses actix's actors; the API
//! and the daemon hold their addresses.
//!
//! Must never know: HTTP routes and status codes. `daemon` starts and stops them in order.
//!
//! | role | runs on | queue bound and overflow rule |
//! |---|---|---|
//! | collector | each HTTP worker; a thread each for large bodies, Graphite and the daemon's own samples | actix mailbox; its callers wait |
//! | writer | thread `writer` | commands and bytes; full: refused, the sender keeps the batch |
//! | checkpointer | arbiter thread | mailbox; full: the request is dropped; the timer starts a later checkpoint |
//! | preallocator | arbiter thread | timer only |
//! | retention | arbiter thread | timer only |
//! | host keeper | arbiter thread | timer only |
//! | sealer | arbiter thread | timer only |
//! | checker | arbiter thread | timer only |
//! | publisher | thread `publisher`, and one of the driver | one command of 4 MiB; the changes of 64 million documents, beyond which whole spans are published |
//! | alerter | arbiter thread, and one for each of eight groups while it is evaluated | missed evaluations are counted; 64 acknowledgements, further ones are refused |
//! | alert forwarder | an arbiter thread for each Alertmanager | none: firing alerts stay in memory until they are delivered |
//! | notifier | arbiter thread, and one for each integration of a receiver while it is notified | 2,000 groups of 500 alerts, stored; the others are only counted; 4 tests of receivers, others are refused |
//! | sparkline refresher | arbiter thread | timer only |
//! | self-sampler | the main thread | one round at a time; further rounds are dropped |
//! | audit keeper | arbiter thread | timer only |
//! | Graphite listeners | the main thread | TCP: back-pressure; UDP: dropped and counted |

mod alert_forwarder;
mod alerter;
mod audit_keeper;
mod checker;
mod checkpointer;
mod collector;
mod disk_budget;
mod dropped;
mod graphite;
mod host_keeper;
mod lifeline;
mod notifier;
mod preallocator;
mod published_state;
mod publisher;
mod retention;
mod sealer;
mod self_sampler;
mod space_keeper;
mod sparkline_refresher;
mod writer;

pub use alert_forwarder::{AlertForwarder, AlertForwarderParts};
pub use alerter::{Alerter, AlerterParts};
pub use audit_keeper::AuditKeeper;
pub use checker::Checker;
pub use checkpointer::{
    CheckpointHistory, CheckpointNow, Checkpointer, CheckpointerParts, PastCheckpoint,
};
pub use collector::{
    CollectBatches, CollectFault, CollectRows, Collector, CollectorParts, CollectorSettings,
    IngestTally, OtherShards, RefusedSample, RowsAnswer, SenderSamples, Sending, SentBatches,
    SentRows, ShardRefusal, SharedDiskQuota, SharedQuota, protocol_label,
};
pub use disk_budget::{BudgetReport, BudgetUse, DiskBudget};
pub use dropped::DroppedPartitions;
pub use graphite::{
    CannotListen, GraphiteAddresses, GraphiteClients, GraphiteListeners, GraphiteSockets,
    GraphiteTimeouts, GraphiteTls,
};
pub use host_keeper::HostKeeper;
pub use lifeline::{Death, Lifeline, Lifelines, Watcher, lifelines};
pub use notifier::{IsSilenced, Notifier, NotifierParts};
pub use preallocator::{Preallocator, PreallocatorParts};
pub use published_state::PublishedState;
pub use publisher::{Publisher, PublisherParts};
pub use retention::{Retention, drop_expired};
pub use sealer::{Sealer, StopFlag};
pub use self_sampler::{ReadOwnMetrics, SelfSampler, SelfSamplerParts};
pub use space_keeper::{Forecast, SpaceKeeper, SpaceKeeperParts};
pub use sparkline_refresher::SparklineRefresher;
pub use writer::{WriteFault, Writer, WriterHandle, WriterParts};

use actix::prelude::Message;

/// A request to a role to stop. The reply means that the role does nothing more.
#[derive(Debug, Clone, Copy, Message)]
#[rtype(result = "()")]
pub struct Stop;

/// A notice to a role that waits for a time: the time may follow from other settings now.
#[derive(Debug, Clone, Copy, Message)]
#[rtype(result = "()")]
pub struct SettingsChanged;
