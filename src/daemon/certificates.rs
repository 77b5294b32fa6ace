//! The certificate in use: read at the start, at each reload, and when its files change.
//!
//! Must never know: connections.

use std::time::Duration;

use tokio::task::spawn_blocking;

use crate::{
    clock::{Clock, SystemClock},
    kept::LiveValue,
    model::{UnixMillis, with_causes},
    telemetry::{Health, Metrics, Shortfall},
    tls::{ServerTls, TlsFault, TlsFiles, Versions},
};

/// The interval at which the files are compared with the files in use.
pub(super) const CHECK_INTERVAL: Duration = Duration::from_secs(10);
/// The two parts of the shortfall in the daemon's health: faulty files, and the expiry of the
/// certificate.
const FILES: &str = "files";
const EXPIRY: &str = "expiry";

/// Valid files, and the configuration that was read from them.
#[derive(Debug, Clone, Default)]
pub(super) struct ReadCertificate {
    files: Option<(TlsFiles, Versions)>,
    tls: Option<ServerTls>,
}

impl ReadCertificate {
    /// Reads the files; without files, TLS is off.
    ///
    /// # Errors
    /// The files cannot be used.
    pub(super) fn read(files: Option<TlsFiles>) -> Result<Self, TlsFault> {
        let Some(files) = files else { return Ok(Self::default()) };
        // The versions are older than the content, so the next check notices a change during the
        // read.
        let versions = files.versions();
        let tls = files.read()?;
        Ok(Self { files: Some((files, versions)), tls: Some(tls) })
    }
}

/// The certificate in use.
pub(super) struct Certificate {
    files: Option<(TlsFiles, Versions)>,
    in_use: LiveValue<Option<ServerTls>>,
    fault: Option<String>,
    metrics: Metrics,
    health: Health,
}

impl Certificate {
    /// Returns the state at the start of the daemon.
    pub(super) fn new(read: ReadCertificate, metrics: &Metrics, health: &Health) -> Self {
        let mut created = Self {
            files: None,
            in_use: LiveValue::default(),
            fault: None,
            metrics: metrics.clone(),
            health: health.clone(),
        };
        created.replace(read);
        created
    }

    /// Returns the certificate for new connections.
    pub(super) fn in_use(&self) -> LiveValue<Option<ServerTls>> {
        self.in_use.clone()
    }

    /// Returns the files as they were last read, with the certificate in use.
    pub(super) fn read_last(&self) -> ReadCertificate {
        ReadCertificate { files: self.files.clone(), tls: Option::clone(&self.in_use.get()) }
    }

    /// Uses other files for new connections.
    pub(super) fn replace(&mut self, ReadCertificate { files, tls }: ReadCertificate) {
        let expires = tls.as_ref().map_or(0, |tls| tls.expires.0 / 1000);
        self.metrics.tls.certificate_expires.set(expires);
        if let (Some((files, _)), Some(tls)) = (&files, &tls) {
            let file = files.certificate.display();
            tracing::info!(%file, expires = %tls.expires, "using a TLS certificate");
        }
        self.files = files;
        self.in_use.set(tls);
        self.set_fault(None);
        self.check_expiry(SystemClock.now());
    }

    /// Notes that other files cannot be used; the previous files stay in use.
    pub(super) fn note_fault(&mut self, fault: String) {
        self.metrics.tls.reload_failures.inc();
        tracing::warn!(fault, "cannot use the changed TLS files; the previous certificate stays");
        self.set_fault(Some(fault));
    }

    fn set_fault(&mut self, fault: Option<String>) {
        let reason = fault.as_ref().map(|fault| format!("the previous certificate stays: {fault}"));
        self.health.set_shortfall(Shortfall::Certificate, FILES, reason);
        self.fault = fault;
    }

    fn check_expiry(&self, now: UnixMillis) {
        let tls = self.in_use.get();
        let reason = tls.as_ref().as_ref().and_then(|tls| expired(tls.expires, now));
        self.health.set_shortfall(Shortfall::Certificate, EXPIRY, reason);
    }

    /// Reads the files again if one of them has changed. Files that do not fit together, such as a
    /// new certificate with the previous key, are read again until they do.
    pub(super) async fn check(&mut self) {
        self.check_expiry(SystemClock.now());
        let Some((files, known)) = self.files.clone() else { return };
        let is_faulty = self.fault.is_some();
        let read = spawn_blocking(move || {
            let versions = files.versions();
            let is_changed = versions != known;
            (is_changed || is_faulty).then(|| (files.read(), (files, versions), is_changed))
        });
        let Ok(Some((read, files, is_changed))) = read.await else { return };
        match read {
            Ok(tls) => self.replace(ReadCertificate { files: Some(files), tls: Some(tls) }),
            Err(fault) => {
                let fault = with_causes(&fault);
                self.files = Some(files);
                // Each change and each new fault is reported once.
                if is_changed || self.fault.as_ref() != Some(&fault) {
                    self.note_fault(fault);
                }
            }
        }
    }
}

/// Returns the problem of a certificate that has expired.
fn expired(expires: UnixMillis, now: UnixMillis) -> Option<String> {
    (expires <= now).then(|| {
        format!("the certificate expired at {expires}, so clients refuse it; replace its files")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expired_certificate_is_reported() {
        assert_eq!(expired(UnixMillis(2), UnixMillis(1)), None);
        let reason = expired(UnixMillis(1_000), UnixMillis(1_000)).unwrap();
        assert!(reason.contains("1970-01-01"), "{reason}");
    }
}
