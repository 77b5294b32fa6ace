//! The JSON form of batches, for scripts.
//!
//! A body is one batch or an array of batches. `samples` is either an object of columns, as in
//! BSON, or an array of samples. Each sample in the array contains a ref that `series` defines, or
//! its own metric and tags. A sample with `fields` instead of `value` stands for one sample per
//! field, of the metric `metric_field`, or of the metric `field` if it has no `metric`. A sample
//! with `histogram` instead of `value` is a native histogram (`histogram.rs`). `agent`, `epoch` and
//! `seq` may be omitted together; such a batch counts again when it is sent again. With `replace`,
//! the samples replace the stored samples at the same times; such a batch has no number. An invalid
//! sample is counted and reported, and does not affect the other samples.

mod batch;
mod histogram;
mod invalid;
mod raw;
mod sample;
mod values;

pub use batch::JsonBatch;
pub use histogram::JsonHistogram;
pub use invalid::InvalidSamples;
pub use sample::{JsonSample, SampleContent, decode_json_sample};

use serde_json::value::RawValue;

use self::batch::{FIELD_BYTES_MAX, convert};
use crate::{BATCHES_PER_REQUEST_MAX, DecodeError};

/// Parses a JSON body. A sample without `time` gets `now`, in Unix milliseconds.
///
/// # Errors
/// The body is not JSON, or not a batch. The error contains line and column, or the location in the
/// batch.
pub fn decode_json(body: &[u8], now: i64) -> Result<Vec<JsonBatch>, DecodeError> {
    let fault = |cause: serde_json::Error| DecodeError::new("JSON body", cause.to_string());
    let is_array = body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[');
    let mut field_bytes = FIELD_BYTES_MAX;
    if !is_array {
        let batch = serde_json::from_slice(body).map_err(fault)?;
        return Ok(vec![convert(batch, now, &mut field_bytes)?]);
    }
    let batches: Vec<&RawValue> = serde_json::from_slice(body).map_err(fault)?;
    if batches.len() > BATCHES_PER_REQUEST_MAX {
        let problem = format!("more than {BATCHES_PER_REQUEST_MAX} batches in one request");
        return Err(DecodeError::new("JSON body", problem));
    }
    let has_several = batches.len() > 1;
    let mut converted = Vec::with_capacity(batches.len());
    for (index, raw) in batches.into_iter().enumerate() {
        let batch = serde_json::from_str(raw.get())
            .map_err(fault)
            .and_then(|batch| convert(batch, now, &mut field_bytes));
        converted.push(batch.map_err(|cause| {
            let location = format!("batch {index}: {}", cause.location);
            if has_several { DecodeError { location, ..cause } } else { cause }
        })?);
    }
    let replace = |batch: &JsonBatch| batch.replace;
    if converted.iter().any(replace) && !converted.iter().all(replace) {
        let problem = "is set for some batches; set it for all batches of a request, or for none";
        return Err(DecodeError::new("replace", problem));
    }
    Ok(converted)
}

#[cfg(test)]
mod tests;
