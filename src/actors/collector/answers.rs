//! The outcomes of requests: the answer for rows, and the faults for which a request is rejected as
//! a whole.
//!
//! Must never know: the paths of batches and of rows.

use granary_protocol::{DecodeError, IngestAnswer};

use crate::{
    actors::WriteFault,
    ingest::{memory::NoMemory, native::UnknownRef, remote_write::EntryCounts},
    model::ProjectName,
};

/// The outcome of a request with rows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RowsAnswer {
    /// The numbers of samples by outcome.
    pub answer: IngestAnswer,
    /// The number of points with refused samples, for protocols whose points have several samples.
    pub refused_points: u64,
    /// The numbers of entries in the body.
    pub contents: EntryCounts,
}

/// The reason why a request was rejected as a whole.
#[derive(Debug, thiserror::Error)]
pub enum CollectFault {
    /// The request is malformed.
    #[error("{0}")]
    Malformed(String),
    /// The caller's key does not include a sender of the request.
    #[error("{0}")]
    Forbidden(String),
    /// The request defines more series, or replaces more readings, than one request may.
    #[error("{0}: send fewer at a time")]
    TooMany(String),
    /// The request uses unknown refs.
    #[error(transparent)]
    UnknownRef(#[from] UnknownRef),
    /// The project has used up its quota of samples.
    #[error(
        "the project {project} has used up its quota of {per_second} samples a second: send less, \
         or ask the administrator to raise samples_per_second of the project in security.projects"
    )]
    Quota {
        /// The project.
        project: ProjectName,
        /// The quota.
        per_second: u64,
    },
    /// The files of the project have reached its limit of bytes.
    #[error(
        "the project {project} has {bytes} bytes on disk and may have {bytes_max}: keep its series \
         for a shorter time, or ask the administrator to raise disk_max of the project in \
         security.projects"
    )]
    DiskQuota {
        /// The project.
        project: ProjectName,
        /// The present bytes.
        bytes: u64,
        /// The quota.
        bytes_max: u64,
    },
    /// Decoding the request needs too much memory.
    #[error(transparent)]
    Memory(#[from] NoMemory),
    /// The store has its maximum number of senders; batches of known senders in the request are
    /// accepted.
    #[error(
        "the project is at its limit of senders, and none was silent for seven days: remove \
         some with `granary senders remove` or raise limits.series_max"
    )]
    SenderLimit,
    /// The holder of another shard refused a part of the request.
    #[error(transparent)]
    Shard(#[from] ShardRefusal),
    /// The batch was not written.
    #[error(transparent)]
    Write(#[from] WriteFault),
}

impl From<DecodeError> for CollectFault {
    fn from(cause: DecodeError) -> Self {
        Self::Malformed(cause.to_string())
    }
}

/// The refusal of a part by the holder of its shard.
#[derive(Debug, thiserror::Error)]
#[error("shard {shard}: {message}")]
pub struct ShardRefusal {
    /// The shard.
    pub shard: u16,
    /// The status of its answer.
    pub status: u16,
    /// The word for programs.
    pub error: String,
    /// The sentence for people.
    pub message: String,
}
