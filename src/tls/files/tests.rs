//! Tests of the files of a certificate, as openssl made them.

use super::*;
use crate::model::with_causes;

fn test_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tls").join(name)
}

fn files(certificate: &Path, key: &Path) -> TlsFiles {
    TlsFiles { certificate: certificate.to_owned(), key: key.to_owned(), client_ca: None }
}

#[test]
fn a_certificate_and_its_key_are_used() {
    let mut files = files(&test_file("server.pem"), &test_file("server.key"));
    assert!(files.read().unwrap().expires.0 > 1_700_000_000_000);
    files.client_ca = Some(test_file("authority.pem"));
    files.read().unwrap();
}

#[test]
fn bad_files_are_named_with_a_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let (good, key) = (test_file("server.pem"), test_file("server.key"));
    let check = |certificate: &[u8], key_content: &[u8], parts: [&str; 2]| {
        let paths = ["cert.pem", "key.pem"].map(|name| dir.path().join(name));
        fs::write(&paths[0], certificate).unwrap();
        fs::write(&paths[1], key_content).unwrap();
        let message = with_causes(&files(&paths[0], &paths[1]).read().unwrap_err());
        for part in parts {
            assert!(message.contains(part), "{part} in {message}");
        }
    };
    let (pem, key_pem) = (fs::read(&good).unwrap(), fs::read(&key).unwrap());
    let authority = fs::read(test_file("authority.pem")).unwrap();
    check(b"", &key_pem, ["cert.pem", "contains no certificate"]);
    check(&pem, b"", ["key.pem", "contains no private key"]);
    check(&pem, &pem, ["key.pem", "contains no private key"]);
    check(&authority, &key_pem, ["key.pem", "is not the key of the certificate"]);
    check(&pem[..pem.len() - 40], &key_pem, ["cert.pem", "no END line"]);
    check(&vec![b'x'; 2 << 20], &key_pem, ["cert.pem", "larger than"]);
    check(&pem.repeat(17), &key_pem, ["cert.pem", "at most 16"]);
    let encrypted =
        b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    check(&pem, encrypted, ["key.pem", "openssl pkey"]);
    let damaged = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    check(damaged.as_bytes(), &key_pem, ["cert.pem", "expiry cannot be read"]);
    let absent = files(&dir.path().join("absent.pem"), &key);
    let message = with_causes(&absent.read().unwrap_err());
    assert!(message.contains("absent.pem: the file does not exist"), "{message}");
    let mut no_authority = files(&good, &key);
    no_authority.client_ca = Some(key.clone());
    let message = no_authority.read().unwrap_err().to_string();
    assert!(message.contains("client CA file"), "{message}");
}

#[test]
fn each_change_of_a_file_changes_the_versions() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cert.pem");
    let files = files(&path, &test_file("server.key"));
    let absent = files.versions();
    fs::write(&path, "1").unwrap();
    let before = files.versions();
    assert_eq!(before, files.versions());
    let other = dir.path().join("other.pem");
    fs::write(&other, "1").unwrap();
    fs::rename(&other, &path).unwrap();
    assert_ne!(before, files.versions());
    assert_ne!(absent, before);
}
