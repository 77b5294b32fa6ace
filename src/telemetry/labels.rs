//! The closed sets of labels of the self-metrics: the word of a label is the name of its variant.

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
    /// Updates in MongoDB's words.
    Updates,
}

impl Protocol {
    /// All of them.
    pub(super) const ALL: &[Self] = Self::VARIANTS;

    /// The label.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum IngestOutcome {
    /// Durable.
    Acknowledged,
    /// The request could not be read.
    Malformed,
    /// The request was larger than allowed.
    TooLarge,
    /// The request came too slowly.
    TooSlow,
    /// The request used refs without definitions.
    UnknownRefs,
    /// The writer's queue was full.
    Busy,
    /// The journal could not be written.
    Failed,
}

impl IngestOutcome {
    /// All of them.
    pub(super) const ALL: &[Self] = Self::VARIANTS;

    /// The label.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The cause for which a datagram was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum DatagramLoss {
    /// The kernel threw it away before it was read.
    Kernel,
    /// Too many waited to be written.
    Buffer,
    /// The writer failed.
    NotWritten,
}

impl DatagramLoss {
    /// All of them.
    pub(super) const ALL: &[Self] = Self::VARIANTS;

    /// The label.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Why a query got no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum QueryOutcome {
    /// The query is invalid.
    Invalid,
    /// Its answer would be larger than allowed.
    TooMuch,
    /// Too many queries ran.
    Busy,
    /// The query took too long.
    Timeout,
    /// The store could not be read.
    Failed,
    /// The client read its answer too slowly.
    Slow,
}

impl QueryOutcome {
    /// All of them.
    pub(super) const ALL: &[Self] = Self::VARIANTS;

    /// The label.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
