//! Bodies of remote-write requests: each file is one body, still compressed with Snappy. Versions
//! 1.0 and 2.0 use different field numbers, so the first field shows the version.

use granary_exposition::wire::Fields;
use snap::raw::{Decoder, decompress_len};

use super::{Location, Source, SourceFault};
use crate::ingest::{
    remote_write::{Families, Version, decode},
    rows::Rows,
};

/// The maximum size of a decompressed body.
pub const BODY_BYTES_MAX: usize = 64 << 20;

/// A file with the body of one request.
#[derive(Debug)]
pub struct RemoteWrite(Option<Vec<u8>>);

impl RemoteWrite {
    /// Decompresses a body.
    ///
    /// # Errors
    /// When the body is not compressed with Snappy, or too large.
    pub fn new(body: &[u8]) -> Result<Self, SourceFault> {
        let damaged = |cause: snap::Error| {
            SourceFault::Damaged(format!("not a remote-write body compressed with snappy: {cause}"))
        };
        let length = decompress_len(body).map_err(damaged)?;
        if length > BODY_BYTES_MAX {
            let problem = format!("a body of {length} bytes is larger than {BODY_BYTES_MAX}");
            return Err(SourceFault::Damaged(problem));
        }
        Ok(Self(Some(Decoder::new().decompress_vec(body).map_err(damaged)?)))
    }
}

impl Source for RemoteWrite {
    fn read(&mut self, rows: &mut Rows<'_>) -> Result<Option<Location>, SourceFault> {
        let Some(body) = self.0.take() else { return Ok(None) };
        let decoded = decode(version_of(&body), &body, &Families::default(), rows);
        decoded.map_err(|fault| SourceFault::Damaged(fault.to_string()))?;
        // The file has only one location.
        Ok(Some(0))
    }
}

fn version_of(body: &[u8]) -> Version {
    match Fields::of(body).next_field() {
        // The fields `symbols` and `timeseries` of 2.0.
        Ok(Some((4 | 5, _))) => Version::V2,
        _ => Version::V1,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::import::{
        intake::{read_all, testing},
        selection::Selection,
    };

    /// Returns `m{a="b"} 1.5 @7`, followed by a stale marker.
    fn body() -> Vec<u8> {
        let mut series = b"\x0a\x0d\x0a\x08__name__\x12\x01m\x0a\x06\x0a\x01a\x12\x01b".to_vec();
        for (at, value) in [(7, 1.5_f64), (8, f64::from_bits(0x7ff0_0000_0000_0002))] {
            series.extend_from_slice(b"\x12\x0b\x09");
            series.extend_from_slice(&value.to_le_bytes());
            series.extend_from_slice(&[0x10, at]);
        }
        let mut out = vec![0x0a, series.len() as u8];
        out.extend(series);
        out
    }

    #[test]
    fn a_body_is_read_and_stale_markers_are_not_samples() {
        let compressed = snap::raw::Encoder::new().compress_vec(&body()).unwrap();
        let (kept, tally) = testing::read(&mut RemoteWrite::new(&compressed).unwrap());
        assert_eq!(kept.samples, [r#"m{a="b"} gauge  7 1.5"#]);
        assert_eq!((tally.samples, tally.stale_markers), (1, 1));
        let mut truncated = RemoteWrite(Some(body()[..20].to_vec()));
        let fault = read_all(
            &mut truncated,
            "a".into(),
            &Selection::default(),
            &mut testing::RecordedOutput::default(),
        );
        assert!(fault.1.is_err());
        assert!(RemoteWrite::new(b"plain text").unwrap_err().to_string().contains("snappy"));
    }

    #[test]
    fn a_body_with_native_histograms_is_read() {
        let mut series = b"\x0a\x0d\x0a\x08__name__\x12\x01m".to_vec();
        // Two observations in bucket 1 and one in bucket 2, of schema 0, at 7 ms.
        let mut histogram = vec![0x08, 3, 0x19];
        histogram.extend_from_slice(&4.5_f64.to_le_bytes());
        histogram.extend_from_slice(&[0x5a, 4, 0x08, 2, 0x10, 2, 0x62, 2, 4, 1, 0x78, 7]);
        series.extend_from_slice(&[0x22, histogram.len() as u8]);
        series.extend(histogram);
        let mut body = vec![0x0a, series.len() as u8];
        body.extend(series);
        let compressed = snap::raw::Encoder::new().compress_vec(&body).unwrap();
        let (kept, tally) = testing::read(&mut RemoteWrite::new(&compressed).unwrap());
        assert_eq!(kept.refused, Vec::<String>::new());
        assert_eq!(kept.samples, ["m histogram  7 3 {1:2,2:1}"]);
        assert_eq!(tally.samples, 1);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            drop(RemoteWrite::new(&bytes));
            let mut source = RemoteWrite(Some(bytes));
            let mut kept = testing::RecordedOutput::default();
            drop(read_all(&mut source, "a".into(), &Selection::default(), &mut kept));
        }
    }
}
