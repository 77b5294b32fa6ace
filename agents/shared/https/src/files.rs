//! Files with certificates and keys (PEM). Errors name the file.
//!
//! Must never know: the use of certificates.

use std::{
    fs,
    io::{self, Read},
    path::Path,
};

use rustls::pki_types::{
    CertificateDer, PrivateKeyDer,
    pem::{self, PemObject},
};

/// The maximum size of a file with keys, certificates, secrets or settings.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// The maximum number of certificates in a file: a list of all public authorities has 150.
const CERTIFICATES_MAX: usize = 1000;

/// Reads the certificates of a file; there is at least one.
///
/// # Errors
/// The file is unreadable, or has no certificate.
pub fn read_certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let bytes = read_small(file)?;
    let mut certificates = Vec::new();
    for certificate in CertificateDer::pem_slice_iter(&bytes) {
        certificates.push(certificate.map_err(|_| format!("{}: damaged PEM", file.display()))?);
        if certificates.len() > CERTIFICATES_MAX {
            return Err(format!("{}: more than {CERTIFICATES_MAX} certificates", file.display()));
        }
    }
    if certificates.is_empty() {
        return Err(format!("{}: no certificate found", file.display()));
    }
    Ok(certificates)
}

/// Reads the private key of a file.
///
/// # Errors
/// The file is unreadable, or has no key without a password.
pub fn read_key(file: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let bytes = read_small(file)?;
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|cause| {
        let fault = if matches!(cause, pem::Error::NoItemsFound) {
            "no private key found; keys that are encrypted with a password are not supported"
        } else {
            "damaged PEM"
        };
        format!("{}: {fault}", file.display())
    })
}

/// Reads a file of keys, certificates, secrets or settings, up to a limit.
///
/// # Errors
/// The file is unreadable or too long; the error names the file.
pub fn read_small(file: &Path) -> Result<Vec<u8>, String> {
    let error = |cause: io::Error| format!("{}: {cause}", file.display());
    let mut bytes = Vec::new();
    let open = fs::File::open(file).map_err(error)?;
    open.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(error)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("{}: more than {FILE_BYTES_MAX} bytes", file.display()));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_certificate_or_key_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        assert!(read_certificates(&path).unwrap_err().contains("ca.pem: "));
        fs::write(&path, "no certificate").unwrap();
        let error = read_certificates(&path).unwrap_err();
        assert!(error.contains("ca.pem: no certificate found"), "{error}");
        let error = read_key(&path).unwrap_err();
        assert!(error.contains("ca.pem: no private key found"), "{error}");
        fs::write(&path, vec![b'a'; (1 << 20) + 1]).unwrap();
        let error = read_certificates(&path).unwrap_err();
        assert!(error.contains("ca.pem: more than 1048576 bytes"), "{error}");
    }
}
