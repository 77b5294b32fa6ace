//! The facts of a certificate that people and clients need: names, validity and public key.
//!
//! The reader follows the fixed order of fields in RFC 5280 and checks neither signatures nor
//! chains; rustls does. Must never know: where certificates come from.

use std::{
    net::{Ipv4Addr, Ipv6Addr},
    time::{Duration, UNIX_EPOCH},
};

use crate::Pin;

/// The maximum number of names that are read.
const NAMES_MAX: usize = 1000;

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OCTETS: u8 = 0x04;
const OBJECT_ID: u8 = 0x06;
const UTC_TIME: u8 = 0x17;
const LONG_TIME: u8 = 0x18;
/// The tag of the optional version, and of the extensions.
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;
/// The tags of names: a host name and an address.
const HOST_NAME: u8 = 0x82;
const ADDRESS: u8 = 0x87;
/// The object IDs of the common name and of the alternative names.
const COMMON_NAME_ID: &[u8] = &[0x55, 4, 3];
const ALTERNATIVE_NAMES_ID: &[u8] = &[0x55, 29, 17];

/// The facts of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// The common name of the owner, often empty.
    pub subject: String,
    /// The common name of the issuer.
    pub issuer: String,
    /// The start of the validity, in Unix seconds.
    pub not_before: u64,
    /// The end of the validity, in Unix seconds.
    pub not_after: u64,
    /// The host names and addresses for which the certificate is valid.
    pub names: Vec<String>,
    /// The pin of the public key.
    pub pin: Pin,
}

/// The rest of a DER encoding.
#[derive(Clone, Copy)]
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// Returns the next value's tag, content, and complete encoding.
    fn next(&mut self) -> Option<(u8, &'a [u8], &'a [u8])> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, mut rest) = rest.split_first()?;
        let length = match first {
            0..=0x7f => usize::from(first),
            0x81..=0x83 => {
                let (digits, content) = rest.split_at_checked(usize::from(first & 0x7f))?;
                rest = content;
                digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit))
            }
            _ => return None,
        };
        let (content, after) = rest.split_at_checked(length)?;
        let (encoding, _) = self.0.split_at_checked(self.0.len() - after.len())?;
        self.0 = after;
        Some((tag, content, encoding))
    }

    /// Returns the content of the next value, which must have this tag.
    fn expect(&mut self, expected: u8) -> Option<Der<'a>> {
        let (tag, content, _) = self.next()?;
        (tag == expected).then_some(Der(content))
    }
}

impl Certificate {
    /// Reads a DER-encoded certificate; `None` when the bytes are not a certificate.
    pub fn read(der: &[u8]) -> Option<Self> {
        let mut fields = Der(der).expect(SEQUENCE)?.expect(SEQUENCE)?;
        let with_version = fields;
        if fields.expect(VERSION).is_none() {
            fields = with_version;
        }
        let (_serial_number, _algorithm) = (fields.next()?, fields.next()?);
        let issuer = common_name(fields.expect(SEQUENCE)?);
        let mut validity = fields.expect(SEQUENCE)?;
        let (not_before, not_after) = (unix_seconds(&mut validity)?, unix_seconds(&mut validity)?);
        let subject = common_name(fields.expect(SEQUENCE)?);
        let (SEQUENCE, _, public_key) = fields.next()? else { return None };
        let mut names = Vec::new();
        while let Some((tag, content, _)) = fields.next() {
            if tag == EXTENSIONS {
                names = alternative_names(Der(content).expect(SEQUENCE)?)?;
            }
        }
        let pin = Pin::of_key(public_key);
        Some(Self { subject, issuer, not_before, not_after, names, pin })
    }
}

/// Returns the common name of a distinguished name, or an empty text.
fn common_name(mut name: Der<'_>) -> String {
    while let Some(mut part) = name.expect(SET) {
        let pair = part.expect(SEQUENCE).and_then(|mut pair| Some((pair.next()?, pair.next()?)));
        if let Some(((OBJECT_ID, COMMON_NAME_ID, _), (_, value, _))) = pair {
            return String::from_utf8_lossy(value).into_owned();
        }
    }
    String::new()
}

/// Reads a time as Unix seconds. Two digits of a year mean 1950 to 2049.
fn unix_seconds(validity: &mut Der<'_>) -> Option<u64> {
    let (tag, content, _) = validity.next()?;
    let text = std::str::from_utf8(content).ok()?;
    let full = match (tag, text.as_bytes().first()?) {
        (UTC_TIME, b'0'..=b'4') => format!("20{text}"),
        (UTC_TIME, _) => format!("19{text}"),
        (LONG_TIME, _) => text.to_owned(),
        _ => return None,
    };
    let digits = full.strip_suffix('Z').filter(|digits| digits.len() == 14)?;
    let part = |from: usize| digits.get(from..from + 2);
    let (century, year, month, day) = (part(0)?, part(2)?, part(4)?, part(6)?);
    let (hour, minute, second) = (part(8)?, part(10)?, part(12)?);
    if digits < "1970" {
        return Some(0);
    }
    let text = format!("{century}{year}-{month}-{day}T{hour}:{minute}:{second}Z");
    let time = humantime::parse_rfc3339(&text).ok()?;
    Some(time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()))
}

/// Returns the host names and addresses of the extensions.
fn alternative_names(mut extensions: Der<'_>) -> Option<Vec<String>> {
    let mut names = Vec::new();
    while let Some(mut extension) = extensions.expect(SEQUENCE) {
        if extension.expect(OBJECT_ID)?.0 != ALTERNATIVE_NAMES_ID {
            continue;
        }
        // A flag may precede the value.
        let (mut tag, mut value, _) = extension.next()?;
        if tag != OCTETS {
            (tag, value, _) = extension.next()?;
        }
        let mut all = Der(value).expect(SEQUENCE).filter(|_| tag == OCTETS)?;
        while let Some((tag, name, _)) = all.next().filter(|_| names.len() < NAMES_MAX) {
            names.extend(match tag {
                HOST_NAME => Some(String::from_utf8_lossy(name).into_owned()),
                ADDRESS => address(name),
                _ => None,
            });
        }
    }
    Some(names)
}

fn address(bytes: &[u8]) -> Option<String> {
    let v4 = <[u8; 4]>::try_from(bytes).map(|bytes| Ipv4Addr::from(bytes).to_string());
    let v6 = || <[u8; 16]>::try_from(bytes).map(|bytes| Ipv6Addr::from(bytes).to_string());
    v4.or_else(|_| v6()).ok()
}

/// Returns a time such as `2027-12-28T05:00:00Z`.
pub fn unix_seconds_text(seconds: u64) -> String {
    /// 9999-12-31T23:59:59Z, the end of the notation.
    const LATEST: u64 = 253_402_300_799;
    let time = UNIX_EPOCH + Duration::from_secs(seconds.min(LATEST));
    humantime::format_rfc3339_seconds(time).to_string()
}

#[cfg(test)]
mod tests;
