//! The closed sets of labels of the self-metrics.

/// How samples came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    pub(super) const ALL: [Self; 8] = [
        Self::Native,
        Self::Json,
        Self::RemoteWrite,
        Self::Influx,
        Self::Otlp,
        Self::Graphite,
        Self::Collectd,
        Self::Updates,
    ];

    /// The label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Json => "json",
            Self::RemoteWrite => "remote_write",
            Self::Influx => "influx",
            Self::Otlp => "otlp",
            Self::Graphite => "graphite",
            Self::Collectd => "collectd",
            Self::Updates => "updates",
        }
    }
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    pub(super) const ALL: [Self; 7] = [
        Self::Acknowledged,
        Self::Malformed,
        Self::TooLarge,
        Self::TooSlow,
        Self::UnknownRefs,
        Self::Busy,
        Self::Failed,
    ];

    /// The label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Acknowledged => "acknowledged",
            Self::Malformed => "malformed",
            Self::TooLarge => "too_large",
            Self::TooSlow => "too_slow",
            Self::UnknownRefs => "unknown_refs",
            Self::Busy => "busy",
            Self::Failed => "failed",
        }
    }
}

/// How a datagram was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatagramLoss {
    /// The kernel threw it away before it was read.
    Kernel,
    /// Too many waited to be written.
    Buffer,
    /// It could not be written.
    NotWritten,
}

impl DatagramLoss {
    pub(super) const ALL: [Self; 3] = [Self::Kernel, Self::Buffer, Self::NotWritten];

    /// The label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Buffer => "buffer",
            Self::NotWritten => "not_written",
        }
    }
}

/// Why a query got no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    pub(super) const ALL: [Self; 6] =
        [Self::Invalid, Self::TooMuch, Self::Busy, Self::Timeout, Self::Failed, Self::Slow];

    /// The label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::TooMuch => "too_much",
            Self::Busy => "busy",
            Self::Timeout => "timeout",
            Self::Failed => "failed",
            Self::Slow => "slow",
        }
    }
}
