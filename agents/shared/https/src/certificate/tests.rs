//! Tests of the reader, with certificates that openssl made.

use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::read_certificates;

fn server() -> Vec<u8> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/data/tls/server.pem");
    read_certificates(&file).unwrap()[0].to_vec()
}

#[test]
fn the_facts_are_those_that_openssl_prints() {
    let read = Certificate::read(&server()).unwrap();
    assert_eq!(read.names, ["localhost", "127.0.0.1"], "{read:?}");
    assert_eq!((&*read.subject, &*read.issuer), ("localhost", "Granary test authority"));
    assert_eq!(unix_seconds_text(read.not_before), "2026-11-23T14:27:33Z");
    assert_eq!(unix_seconds_text(read.not_after), "2126-10-30T14:27:33Z");
    // openssl x509 -pubkey | openssl pkey -pubin -outform der | openssl dgst -sha256 -binary | base64
    assert_eq!(read.pin.to_string(), "sha256//h7GLziin8g29bvFmh6kxMl8lS6WYB7F2XN1XV0v4VbU=");
}

#[test]
fn times_have_two_or_four_digits_of_the_year() {
    let read = |tag: u8, text: &str| {
        let bytes = [&[tag, text.len() as u8], text.as_bytes()].concat();
        unix_seconds(&mut Der(&bytes)).map(unix_seconds_text)
    };
    let is = |text: &str| Some(text.to_owned());
    assert_eq!(read(UTC_TIME, "271228050000Z"), is("2027-12-28T05:00:00Z"));
    assert_eq!(read(UTC_TIME, "700101000000Z"), is("1970-01-01T00:00:00Z"));
    assert_eq!(read(UTC_TIME, "500101000000Z"), is("1970-01-01T00:00:00Z"));
    assert_eq!(read(LONG_TIME, "20500101000000Z"), is("2050-01-01T00:00:00Z"));
    assert_eq!(read(LONG_TIME, "99991231235959Z"), is("9999-12-31T23:59:59Z"));
    for wrong in ["", "271228050000", "2712280500Z", "27122805000aZ", "271328050000Z", "\u{e4}Z"] {
        assert_eq!(read(UTC_TIME, wrong), None, "{wrong}");
    }
}

proptest! {
    /// The bytes come from a server, so any bytes must be read or refused without a panic.
    #[test]
    fn cut_and_changed_certificates_are_read_or_refused(
        length in 0_usize..2000, at in 0_usize..2000, byte: u8
    ) {
        let mut der = server();
        let index = at % der.len();
        der[index] = byte;
        der.truncate(length);
        let _read = Certificate::read(&der);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
        prop_assert_eq!(Certificate::read(&bytes), None);
    }
}
