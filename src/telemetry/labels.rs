//! The closed sets of labels of the self-metrics: the word of a label is the name of its variant.

use strum::{IntoStaticStr, VariantArray};

/// How samples came in.
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

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum IngestOutcome {
    /// Durable.
    Acknowledged,
    /// It could not be read.
    Malformed,
    /// It was larger than allowed.
    TooLarge,
    /// It came too slowly.
    TooSlow,
    /// It used refs without definitions.
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

/// How a datagram was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum DatagramLoss {
    /// The kernel threw it away before it was read.
    Kernel,
    /// Too many waited to be written.
    Buffer,
    /// It could not be written.
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
    /// It cannot be read or answered as it is.
    Invalid,
    /// Its answer would be larger than allowed.
    TooMuch,
    /// Too many queries ran.
    Busy,
    /// It took too long.
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
