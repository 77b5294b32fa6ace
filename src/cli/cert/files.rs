//! The files of certificates and keys: keys are readable by their owner only, and nothing is
//! overwritten unless it is renewed.

use std::{
    fs,
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use base64::{Engine, prelude::BASE64_STANDARD};
use granary_https::{Certificate, read_certificates, read_key};
use rcgen::KeyPair;

use super::make;

/// The characters of a line in a PEM file.
const LINE_CHARS: usize = 64;

/// The files of a certificate and its key.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
}

impl Pair {
    pub(super) fn new(dir: &Path, name: &str) -> Self {
        Self { certificate: dir.join(format!("{name}.pem")), key: dir.join(format!("{name}.key")) }
    }

    /// Returns the key for a new certificate: a new one, or the stored one when the certificate is
    /// renewed.
    pub(super) fn key(&self, renew: bool) -> anyhow::Result<KeyPair> {
        let shown = self.key.display();
        if renew {
            if !self.key.exists() {
                bail!(
                    "{shown} does not exist; leave out --renew to create a key and a certificate"
                );
            }
            return self.stored_key();
        }
        if let Some(file) = [&self.key, &self.certificate].into_iter().find(|file| file.exists()) {
            bail!(
                "{} exists; --renew replaces the certificate and keeps the key, --dir selects \
                 another folder",
                file.display()
            );
        }
        make::new_key()
    }

    /// Reads the stored key.
    pub(super) fn stored_key(&self) -> anyhow::Result<KeyPair> {
        let key = read_key(&self.key).map_err(anyhow::Error::msg)?;
        make::parse_key(&key).with_context(|| format!("read {}", self.key.display()))
    }

    /// Returns the facts of the stored certificate.
    pub(super) fn stored_certificate(&self) -> anyhow::Result<Certificate> {
        let all = read_certificates(&self.certificate).map_err(anyhow::Error::msg)?;
        let first = all.first().and_then(|certificate| Certificate::read(certificate));
        first.with_context(|| format!("{}: not a certificate", self.certificate.display()))
    }

    /// Writes the certificate, and the key unless it is the stored one.
    pub(super) fn write(
        &self,
        certificate: &[u8],
        key: &KeyPair,
        renew: bool,
    ) -> anyhow::Result<()> {
        if let Some(dir) = self.key.parent() {
            fs::create_dir_all(dir).with_context(|| format!("create {}", dir.display()))?;
        }
        if !renew {
            write_new(&self.key, &pem("PRIVATE KEY", key.serialized_der()), 0o600)?;
        }
        let text = pem("CERTIFICATE", certificate);
        if !self.certificate.exists() {
            return write_new(&self.certificate, &text, 0o644);
        }
        // A daemon that reads the file meanwhile gets the old or the new one.
        let mut temporary = self.certificate.clone().into_os_string();
        temporary.push(".new");
        let temporary = PathBuf::from(temporary);
        // An interrupted run may have left the file.
        drop(fs::remove_file(&temporary));
        write_new(&temporary, &text, 0o644)?;
        let renamed = fs::rename(&temporary, &self.certificate);
        renamed.with_context(|| format!("replace {}", self.certificate.display()))
    }
}

fn write_new(path: &Path, text: &str, mode: u32) -> anyhow::Result<()> {
    let error = || format!("write {}", path.display());
    let mut options = fs::OpenOptions::new();
    let mut file =
        options.write(true).create_new(true).mode(mode).open(path).with_context(error)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).with_context(error)
}

fn pem(label: &str, der: &[u8]) -> String {
    let text: Vec<char> = BASE64_STANDARD.encode(der).chars().collect();
    let lines: Vec<String> = text.chunks(LINE_CHARS).map(|line| line.iter().collect()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}
