//! The closed sets of labels of the self-metrics: a label is the name of its variant.

use strum::{IntoStaticStr, VariantArray};

/// The protocol of ingested samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Protocol {
    /// BSON batches.
    Native,
    /// JSON batches.
    Json,
    /// Prometheus remote write.
    RemoteWrite,
    /// InfluxDB line protocol.
    Influx,
    /// OTLP metrics.
    Otlp,
    /// Graphite, plaintext or pickle.
    Graphite,
    /// collectd's JSON.
    Collectd,
    /// Updates in MongoDB's syntax.
    Updates,
}

impl Protocol {
    /// All variants.
    pub(super) const ALL: &[Self] = Self::VARIANTS;

    /// Returns the label.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum IngestOutcome {
    /// The samples are durable.
    Acknowledged,
    /// The request could not be read.
    Malformed,
    /// The request was larger than allowed.
    TooLarge,
    /// The request arrived too slowly.
    TooSlow,
    /// The request used refs without definitions.
    UnknownRefs,
    /// The writer's queue, the memory of bodies or the list of senders was full.
    Busy,
    /// The journal could not be written, or the daemon was stopping.
    Failed,
}

impl IngestOutcome {
    /// All variants.
    pub(super) const ALL: &[Self] = Self::VARIANTS;

    /// Returns the label.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The reason why a datagram was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum DatagramLoss {
    /// The kernel dropped the datagram before it was read.
    Kernel,
    /// Too many datagrams waited to be written.
    Buffer,
    /// The datagram could not be written to the journal.
    NotWritten,
}

impl DatagramLoss {
    /// All variants.
    pub(super) const ALL: &[Self] = Self::VARIANTS;

    /// Returns the label.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The reason why a query was not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum QueryOutcome {
    /// The query is invalid.
    Invalid,
    /// The answer would exceed a limit.
    TooMuch,
    /// Too many queries were running.
    Busy,
    /// The query timed out.
    Timeout,
    /// The store could not be read.
    Failed,
    /// The client read its answer too slowly.
    Slow,
}

impl QueryOutcome {
    /// All variants.
    pub(super) const ALL: &[Self] = Self::VARIANTS;

    /// Returns the label.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
