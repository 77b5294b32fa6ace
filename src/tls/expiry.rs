//! The end of a certificate's validity (RFC 5280, section 4.1), read from DER (ITU-T X.690).
//!
//! Must never know: files.

use jiff::civil::DateTime;

use crate::model::UnixMillis;

/// The tags of DER.
const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// The beginning of Unix time.
const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

/// Returns the end of validity of a certificate in DER; `None` if it cannot be read.
pub fn not_after(certificate: &[u8]) -> Option<UnixMillis> {
    let (certificate, _) = element(certificate, SEQUENCE)?;
    let (mut fields, _) = element(certificate, SEQUENCE)?;
    // The version is optional; serial number, signature algorithm and issuer precede the validity.
    if let Some((_, rest)) = element(fields, VERSION) {
        fields = rest;
    }
    for tag in [INTEGER, SEQUENCE, SEQUENCE] {
        (_, fields) = element(fields, tag)?;
    }
    let (validity, _) = element(fields, SEQUENCE)?;
    let (_, not_after) = any_element(validity)?;
    let (tag, text, _) = split(not_after)?;
    time(tag, text)
}

/// Splits the first element from its successors, whatever its tag is.
fn any_element(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    split(bytes).map(|(_, content, rest)| (content, rest))
}

/// Splits the first element from its successors, if it has this tag.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    split(bytes).filter(|(found, ..)| *found == tag).map(|(_, content, rest)| (content, rest))
}

/// Returns the first element's tag and content, and the bytes after it.
fn split(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let [tag, length, rest @ ..] = bytes else { return None };
    let (length, rest) = if *length < 0x80 {
        (usize::from(*length), rest)
    } else {
        // More than four bytes would exceed any file.
        let digits = usize::from(*length & 0x7f);
        let (digits, rest) = rest.split_at_checked(digits).filter(|_| (1..=4).contains(&digits))?;
        (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((*tag, content, rest))
}

/// Reads a time: `YYMMDDHHMMSSZ`, with years from 1950 to 2049, or `YYYYMMDDHHMMSSZ`.
fn time(tag: u8, text: &[u8]) -> Option<UnixMillis> {
    let digits = text.strip_suffix(b"Z")?;
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = |digits: &[u8]| {
        digits.iter().fold(0, |number, digit| number * 10 + i16::from(digit - b'0'))
    };
    let (year, rest) = match (tag, digits.len()) {
        (UTC_TIME, 12) => {
            let (year, rest) = digits.split_at(2);
            let year = number(year);
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        (GENERALIZED_TIME, 14) => {
            let (year, rest) = digits.split_at(4);
            (number(year), rest)
        }
        _ => return None,
    };
    let mut parts = rest.chunks_exact(2).map(|digits| number(digits) as i8);
    let mut part = || parts.next();
    let (month, day, hour) = (part()?, part()?, part()?);
    let at = DateTime::new(year, month, day, hour, part()?, part()?, 0).ok()?;
    // A timestamp cannot hold the end of the year 9999, which means "no expiry".
    i64::try_from(at.duration_since(EPOCH).as_millis()).ok().map(UnixMillis)
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use rustls::pki_types::{CertificateDer, pem::PemObject};

    use super::*;

    fn certificate(name: &str) -> CertificateDer<'static> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tls");
        CertificateDer::from_pem_slice(&fs::read(folder.join(name)).unwrap()).unwrap()
    }

    #[test]
    fn the_end_of_validity_is_read() {
        let check = |name: &str, expected: &str| {
            let expected: jiff::Timestamp = expected.parse().unwrap();
            let found = not_after(&certificate(name));
            assert_eq!(found, Some(UnixMillis(expected.as_millisecond())), "{name}");
        };
        // By openssl x509 -noout -enddate -in FILE.
        check("server.pem", "2126-10-30T14:27:33Z");
        check("authority.pem", "2126-10-30T14:27:32Z");
    }

    #[test]
    fn both_forms_of_times_are_read() {
        // The seconds by date --utc --date=... +%s.
        let check = |tag: u8, text: &str, seconds: Option<i64>| {
            let expected = seconds.map(|seconds| UnixMillis(seconds * 1000));
            assert_eq!(time(tag, text.as_bytes()), expected, "{text}");
        };
        check(UTC_TIME, "491231235959Z", Some(2_524_607_999));
        check(UTC_TIME, "500101000000Z", Some(-631_152_000));
        check(GENERALIZED_TIME, "99991231235959Z", Some(253_402_300_799));
        for text in ["", "Z", "491331235959Z", "4912312359Z", "49123123595aZ", "491231235959"] {
            check(UTC_TIME, text, None);
        }
    }

    #[test]
    fn damaged_certificates_cause_no_panic() {
        let whole = certificate("server.pem");
        for length in 0..whole.len() {
            not_after(&whole[..length]);
        }
        let mut rng = fastrand::Rng::with_seed(7);
        for _ in 0..100_000 {
            let mut bytes = whole.to_vec();
            for _ in 0..rng.usize(1..4) {
                // The fields up to the validity.
                bytes[rng.usize(0..200)] = rng.u8(..);
            }
            not_after(&bytes);
        }
    }
}
