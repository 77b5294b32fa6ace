//! The content of certificates: P-256 keys, names, purposes and validity.
//!
//! The name of a CA follows from its key, so that the key alone is enough to sign further
//! certificates. Must never know: files.

use std::{net::IpAddr, time::Duration};

use anyhow::Context;
use granary_https::{
    Pin,
    pki_types::{DnsName, PrivateKeyDer},
};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData, SanType, SerialNumber,
};

use crate::model::UnixMillis;

/// The time between the start of a certificate's validity and the moment at which it is made: the
/// clocks of clients may be slow.
const MARGIN_MS: i64 = 3_600_000;
const DAY_MS: i64 = 86_400_000;
/// The longest common name (RFC 5280).
const COMMON_NAME_MAX: usize = 64;

/// The validity of a certificate: its first moment, and its length.
#[derive(Debug, Clone, Copy)]
pub(super) struct Validity {
    pub(super) now: UnixMillis,
    pub(super) days: u32,
}

/// The purpose of a certificate that a CA signs.
#[derive(Debug, Clone, Copy)]
pub(super) enum Purpose {
    Server,
    Client,
}

/// Parses a host name, a wildcard such as `*.example.org`, or an address.
pub(super) fn parse_name(text: &str) -> Result<String, String> {
    let text = text.trim().to_lowercase();
    let name = text.strip_prefix("*.").unwrap_or(&text);
    if text.parse::<IpAddr>().is_ok() || DnsName::try_from(name).is_ok() {
        return Ok(text);
    }
    Err("not a host name or an address; use mon.example.org, *.example.org or 192.0.2.7".to_owned())
}

/// Generates a key.
pub(super) fn new_key() -> anyhow::Result<KeyPair> {
    KeyPair::generate().context("generate a key")
}

/// Parses a stored key.
pub(super) fn parse_key(key: &PrivateKeyDer<'_>) -> anyhow::Result<KeyPair> {
    KeyPair::try_from(key).context("use a P-256, P-384, Ed25519 or RSA key in the format PKCS#8")
}

/// Returns the pin of a key.
pub(super) fn pin_of(key: &KeyPair) -> Pin {
    Pin::of_key(&key.subject_public_key_info())
}

/// Returns the name of the CA with this key.
pub(super) fn authority_name(key: &KeyPair) -> String {
    let [a, b, c, d, ..] = *pin_of(key).digest();
    format!("Granary CA {:08x}", u32::from_be_bytes([a, b, c, d]))
}

/// Returns the certificate of a CA, signed by itself (DER).
pub(super) fn authority(key: &KeyPair, validity: Validity) -> anyhow::Result<Vec<u8>> {
    let certificate = authority_params(key, validity).self_signed(key).context("sign the CA")?;
    Ok(certificate.der().to_vec())
}

/// Returns a certificate for the public key of `key`, signed by the CA (DER).
pub(super) fn signed(
    key: &KeyPair,
    names: &[String],
    purpose: Purpose,
    validity: Validity,
    authority_key: KeyPair,
) -> anyhow::Result<Vec<u8>> {
    let mut params = params(key, validity);
    for name in names {
        let name = match name.parse() {
            Ok(address) => SanType::IpAddress(address),
            Err(_) => SanType::DnsName(name.as_str().try_into().context("write a name")?),
        };
        params.subject_alt_names.push(name);
    }
    if let Some(name) = names.iter().find(|name| name.len() <= COMMON_NAME_MAX) {
        params.distinguished_name.push(DnType::CommonName, name.as_str());
    }
    params.is_ca = IsCa::ExplicitNoCa;
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![match purpose {
        Purpose::Server => ExtendedKeyUsagePurpose::ServerAuth,
        Purpose::Client => ExtendedKeyUsagePurpose::ClientAuth,
    }];
    let issuer = Issuer::new(authority_params(&authority_key, validity), authority_key);
    Ok(params.signed_by(key, &issuer).context("sign the certificate")?.der().to_vec())
}

fn authority_params(key: &KeyPair, validity: Validity) -> CertificateParams {
    let mut params = params(key, validity);
    params.distinguished_name.push(DnType::CommonName, authority_name(key));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn params(key: &KeyPair, validity: Validity) -> CertificateParams {
    let Validity { now, days } = validity;
    let at = |ms: i64| {
        rcgen::date_time_ymd(1970, 1, 1) + Duration::from_millis(u64::try_from(ms).unwrap_or(0))
    };
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.not_before = at(now.0 - MARGIN_MS);
    params.not_after = at(now.0 + i64::from(days) * DAY_MS);
    // A renewed certificate has the same key, but must not have the same serial number.
    let seed = [&key.subject_public_key_info()[..], &now.0.to_be_bytes()].concat();
    let mut number: Vec<u8> = Pin::of_key(&seed).digest().iter().take(16).copied().collect();
    // Serial numbers are positive, and their first byte is not zero.
    number[0] = number[0] & 0x7f | 0x40;
    params.serial_number = Some(SerialNumber::from(number));
    params
}

#[cfg(test)]
mod tests {
    use granary_https::Certificate;

    use super::*;

    #[test]
    fn names_are_host_names_wildcards_and_addresses() {
        for good in ["mon", "mon.example.org", "*.example.org", "192.0.2.7", "2001:db8::7"] {
            assert_eq!(parse_name(good), Ok(good.to_owned()));
        }
        assert_eq!(parse_name(" Mon.Example.ORG"), Ok("mon.example.org".to_owned()));
        for bad in ["", "*", "a b", "http://mon", "mon:7117", "*.*.org", "[::1]", "-a", "a/../b"] {
            assert!(parse_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_certificate_says_what_it_was_made_for() {
        let (authority_key, key) = (new_key().unwrap(), new_key().unwrap());
        let validity = Validity { now: UnixMillis(1_795_651_200_000), days: 397 };
        let root = Certificate::read(&authority(&authority_key, validity).unwrap()).unwrap();
        assert!(root.subject.starts_with("Granary CA "), "{root:?}");
        assert_eq!(root.subject, root.issuer);
        let names = ["mon.example.org", "192.0.2.7", "2001:db8::7"].map(str::to_owned);
        let der = signed(&key, &names, Purpose::Server, validity, authority_key).unwrap();
        let read = Certificate::read(&der).unwrap();
        assert_eq!((&read.issuer, &*read.subject), (&root.subject, "mon.example.org"));
        assert_eq!((read.names, read.pin), (names.to_vec(), pin_of(&key)));
        assert_eq!(read.not_before * 1000, 1_795_651_200_000 - 3_600_000);
        assert_eq!(read.not_after, 1_795_651_200 + 397 * 86_400);
    }
}
