//! Answers about the whole store: files, hosts, senders, and sparklines of each host.
//!
//! Must never know: HTTP.

mod hosts;
mod senders;
mod sparklines;
mod storage;

pub use hosts::{HostAlerts, HostsAnswer, HostsRemoved};
pub use senders::{
    SenderEntry, SenderEpoch, SendersAnswer, SendersPart, SendersRemoved, SendersRequest,
};
pub use sparklines::{
    FullestFilesystem, HostLines, SharedSparklines, Spark, SparklineSums, Sparklines,
    SparklinesAnswer,
};
pub use storage::{
    BoundedBytes, ListedPartition, PartitionState, StorageAnswer, StoredBytes, StoredGranularity,
    StoredJournal, storage,
};
