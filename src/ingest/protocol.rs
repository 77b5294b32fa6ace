//! All protocols, and the only code that chooses a decoder.
//!
//! Must never know: HTTP, sockets, the writer. Senders of the native protocol number their batches
//! and use refs to series; all other protocols are decoded into rows.

use std::sync::Arc;

use bytes::Bytes;
use granary_protocol::{
    BatchView, DecodeError, InvalidSamples, JsonBatch, decode_batch, decode_json, encode_batch,
    read_histograms, split_batches, unpack,
};

use super::{
    collectd,
    graphite::{self, Template},
    influx::{self, Precision},
    memory::json_bytes,
    otlp::{self, Form},
    remote_write::{self, EntryCounts, Families, Version},
    rows::{Rows, decode_part},
    updates,
};
use crate::model::{UnixMillis, is_own_sender};

/// The maximum ratio of the decoded size of a packed body to its own size. The smallest parts grow
/// most: a tag of a series takes at least two bytes of the body, and a sample three.
const PACKED_FACTOR: usize = 48;

/// The maximum ratio of the memory of histograms, in a batch and for the journal's record, to their
/// bytes in a body. A bucket takes at least two bytes of the body.
const HISTOGRAM_FACTOR: usize = 24;

/// The encodings of native batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchEncoding {
    /// A sequence of BSON documents.
    Bson,
    /// A JSON object or array.
    Json,
    /// A compact columnar encoding.
    Packed,
    /// Updates in MongoDB's syntax.
    Updates,
}

/// A body of batches, as BSON.
#[derive(Debug, Default)]
pub struct DecodedBody {
    /// The batches.
    pub bson: Bytes,
    /// The invalid samples of each batch of JSON or updates.
    pub invalid: Vec<InvalidSamples>,
    /// True when the samples replace the stored ones of the same times.
    pub replace: bool,
}

/// The prefix of the sender name of an imported file.
const IMPORT_PREFIX: &str = "import:";

impl BatchEncoding {
    /// Returns true when a sender declares the kinds of its series. Imports and updates guess them,
    /// and JSON may omit them.
    pub fn declares_kinds(self, sender: &str) -> bool {
        matches!(self, Self::Bson | Self::Packed) && !sender.starts_with(IMPORT_PREFIX)
    }

    /// Returns the memory in bytes of a decoded body: its batches and their journal record.
    pub fn memory(self, body: &[u8]) -> usize {
        match self {
            Self::Bson => 2 * body.len(),
            Self::Json => json_bytes(body),
            Self::Packed => PACKED_FACTOR * body.len(),
            // The values, and the definitions and samples decoded from them.
            Self::Updates => 2 * json_bytes(body),
        }
    }

    /// Returns the memory in bytes of the histograms of a decoded body, in addition to
    /// [`BatchEncoding::memory`].
    pub fn histogram_memory(self, bytes: usize) -> usize {
        match self {
            Self::Bson | Self::Json | Self::Updates => HISTOGRAM_FACTOR * bytes,
            // `PACKED_FACTOR` is larger than this factor and the copies in BSON together.
            Self::Packed => 0,
        }
    }

    /// Converts the body to BSON. All encodings share BSON's decoder: there is one path to test.
    ///
    /// # Errors
    /// The error names the location of the malformed part.
    pub fn bson(self, body: Bytes, now: UnixMillis) -> Result<DecodedBody, DecodeError> {
        let mut bson = Vec::new();
        let mut decoded = DecodedBody::default();
        let batches = match self {
            Self::Bson => return Ok(DecodedBody { bson: body, ..decoded }),
            Self::Json => decode_json(&body, now.0)?,
            Self::Updates => updates::decode(&body)?,
            Self::Packed => {
                unpack(&body)?.iter().for_each(|batch| encode_batch(batch, &mut bson));
                Vec::new()
            }
        };
        for JsonBatch { batch, invalid, replace } in batches {
            encode_batch(&batch, &mut bson);
            decoded.invalid.push(invalid);
            decoded.replace |= replace;
        }
        Ok(DecodedBody { bson: bson.into(), ..decoded })
    }
}

/// Returns the batches of a BSON body.
///
/// # Errors
/// The error names the location of the malformed part, and the index of its batch if the body has
/// several.
pub fn batches(body: &[u8]) -> Result<Vec<BatchView<'_>>, DecodeError> {
    let batches = split_batches(body)?;
    let several = batches.len() > 1;
    let in_batch = |index: usize, cause: DecodeError| DecodeError {
        location: if several {
            format!("batch {index}: {}", cause.location)
        } else {
            cause.location
        },
        problem: cause.problem,
    };
    let decode_one = |(index, bytes)| decode_named(bytes).map_err(|cause| in_batch(index, cause));
    batches.into_iter().enumerate().map(decode_one).collect()
}

/// Decodes a batch. The log and the state of the daemon show the names of senders, so a name must
/// not begin another line.
fn decode_named(bytes: &[u8]) -> Result<BatchView<'_>, DecodeError> {
    let view = decode_batch(bytes)?;
    if view.agent.contains(char::is_control) && !is_own_sender(view.agent) {
        let problem = "the name has a control character; use another name".to_owned();
        return Err(DecodeError { location: "agent".to_owned(), problem });
    }
    read_histograms(view.histograms, view.len()).try_for_each(|found| found.map(drop))?;
    Ok(view)
}

/// A protocol that is decoded into rows: a series by its name, a time, a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowProtocol {
    /// Prometheus remote write, decompressed.
    RemoteWrite(Version),
    /// InfluxDB line protocol.
    Influx(Precision),
    /// OTLP metrics.
    Otlp(Form),
    /// Complete lines of Graphite's plaintext protocol.
    GraphiteLines,
    /// One message of Graphite's pickle protocol, without its length prefix.
    GraphitePickle,
    /// collectd's value lists as JSON.
    Collectd,
    /// Rows that another node decoded and split.
    Part,
}

impl RowProtocol {
    /// Returns the memory for decoding a body, without its rows.
    pub fn memory(self, body: &[u8]) -> usize {
        match self {
            Self::Otlp(Form::Json) | Self::Collectd => json_bytes(body),
            Self::RemoteWrite(_)
            | Self::Influx(_)
            | Self::Otlp(Form::Protobuf)
            | Self::GraphiteLines
            | Self::GraphitePickle
            | Self::Part => 0,
        }
    }
}

/// Decodes bodies into rows, with the state that one body leaves for the next.
#[derive(Debug)]
pub struct RowDecoder {
    families: Families,
    templates: Arc<[Template]>,
}

impl RowDecoder {
    /// Returns a decoder with the templates for Graphite's paths, and the metric families that remote
    /// write declared.
    pub fn new(templates: Arc<[Template]>, families: Families) -> Self {
        Self { families, templates }
    }

    /// Replaces the templates; returns true when they differ, so that paths must be looked up again.
    pub fn set_templates(&mut self, templates: &Arc<[Template]>) -> bool {
        let is_changed = *self.templates != **templates;
        if is_changed {
            self.templates = templates.clone();
        }
        is_changed
    }

    /// Returns true at the first call after declared kinds of series changed: the series must be
    /// looked up again.
    pub fn take_changed_kinds(&mut self) -> bool {
        self.families.has_changed()
    }

    /// Adds the rows of a body. For remote write, returns the numbers of its entries.
    ///
    /// # Errors
    /// The error names the location of the malformed part.
    pub fn decode(
        &mut self,
        protocol: RowProtocol,
        body: &[u8],
        now: UnixMillis,
        rows: &mut Rows<'_>,
    ) -> Result<EntryCounts, String> {
        match protocol {
            RowProtocol::RemoteWrite(version) => {
                return remote_write::decode(version, body, &self.families, rows)
                    .map_err(|fault| fault.to_string());
            }
            RowProtocol::Influx(precision) => influx::decode(body, precision, now, rows)?,
            RowProtocol::Otlp(form) => otlp::decode(form, body, rows)?,
            RowProtocol::GraphiteLines => {
                graphite::decode_lines(body, &self.templates, now, rows);
            }
            RowProtocol::GraphitePickle => {
                graphite::decode_pickle(body, &self.templates, now, rows)?;
            }
            RowProtocol::Collectd => collectd::decode(body, rows)?,
            RowProtocol::Part => decode_part(body, rows)?,
        }
        Ok(EntryCounts::default())
    }
}
