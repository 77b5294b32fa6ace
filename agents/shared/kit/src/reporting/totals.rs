//! The agent's totals of rounds, samples, batches and requests, and the file that shows them.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use granary_https::FailureReason;
use tracing::warn;

use crate::spool::SpoolUsage;

macro_rules! totals {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Totals since the agent started. The sampling and the sending thread update them.
        #[derive(Debug, Default)]
        pub(crate) struct Totals { $($(#[$doc])* pub(crate) $name: Total,)* }

        impl Totals {
            /// Returns the name and the value of each total.
            pub(crate) fn list(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name.get())),*]
            }
        }
    };
}

totals! {
    /// Rounds sampled and stored.
    rounds,
    /// Ticks of the schedule at which nothing was sampled.
    ticks_missed,
    /// Samples stored in the spool.
    samples_collected,
    /// Batches that the daemon answered with 200.
    batches_acknowledged,
    /// Samples that the daemon accepted.
    samples_acknowledged,
    /// Samples that the daemon had accepted before.
    samples_duplicate,
    /// Samples that the daemon will never accept.
    samples_refused,
    /// Batches dropped because the spool was full.
    batches_dropped,
    /// Samples of the dropped batches.
    samples_dropped,
    /// Batches set aside because the daemon rejected them.
    batches_rejected,
    /// Samples of the rejected batches.
    samples_rejected,
    /// Histograms that were omitted because the daemon stores only numbers.
    histograms_omitted,
    /// Requests sent.
    requests,
    /// Requests that failed and are retried.
    requests_failed,
    /// Failed requests without a connection.
    requests_failed_connect,
    /// Failed requests because TLS found no trust between daemon and agent.
    requests_failed_tls,
    /// Failed requests without a response in time.
    requests_failed_timeout,
    /// Failed requests whose connection ended before the response.
    requests_failed_connection,
    /// Failed requests with a response that is not an acknowledgement.
    requests_failed_answer,
}

/// The kind of a failed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// A response arrived, but not an acknowledgement.
    Answer,
    /// No response arrived.
    NoAnswer(FailureReason),
}

impl Totals {
    /// Counts a failed request by its reason.
    pub(crate) fn count_failure(&self, failure: Failure) {
        self.requests_failed.add(1);
        let by_reason = match failure {
            Failure::Answer => &self.requests_failed_answer,
            Failure::NoAnswer(FailureReason::Connect) => &self.requests_failed_connect,
            Failure::NoAnswer(FailureReason::Tls) => &self.requests_failed_tls,
            Failure::NoAnswer(FailureReason::Timeout) => &self.requests_failed_timeout,
            Failure::NoAnswer(FailureReason::Connection) => &self.requests_failed_connection,
        };
        by_reason.add(1);
    }
}

/// A count that only grows.
#[derive(Debug, Default)]
pub(crate) struct Total(AtomicU64);

impl Total {
    /// Adds to the count.
    pub(crate) fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    /// Returns the count.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The writer of the JSON file with the totals.
#[derive(Debug)]
pub(crate) struct ReportFile {
    path: PathBuf,
    agent: String,
    /// True when the last attempt to write the file failed.
    has_failed: bool,
}

impl ReportFile {
    /// Creates a report that is not written yet.
    pub(crate) fn new(path: PathBuf, agent: String) -> Self {
        Self { path, agent, has_failed: false }
    }

    /// Writes the totals, and logs the first of several failures in a row.
    pub(crate) fn write(&mut self, epoch: i64, totals: &Totals, spool_usage: SpoolUsage) {
        let written = write_report(&self.path, &self.agent, epoch, totals, spool_usage);
        if let Err(cause) = &written
            && !self.has_failed
        {
            let cause = cause as &dyn std::error::Error;
            warn!(path = %self.path.display(), cause, "cannot write the report");
        }
        self.has_failed = written.is_err();
    }
}

/// Replaces the file at `path` atomically.
fn write_report(
    path: &Path,
    agent: &str,
    epoch: i64,
    totals: &Totals,
    spool_usage: SpoolUsage,
) -> io::Result<()> {
    let mut report = serde_json::Map::new();
    report.insert("agent".to_owned(), agent.into());
    report.insert("epoch".to_owned(), epoch.into());
    for (name, value) in totals.list() {
        report.insert(name.to_owned(), value.into());
    }
    report.insert("spool_batches".to_owned(), spool_usage.batches.into());
    report.insert("spool_bytes".to_owned(), spool_usage.bytes.into());
    let mut text = serde_json::to_string_pretty(&report)?;
    text.push('\n');
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".new");
    fs::write(&temporary, text)?;
    fs::rename(&temporary, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_contains_every_total_and_leaves_no_temporary_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.json");
        let totals = Totals::default();
        totals.samples_acknowledged.add(7);
        for _ in 0..2 {
            write_report(&path, "a", 5, &totals, SpoolUsage { batches: 2, bytes: 9 }).unwrap();
        }
        let report: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(report["samples_acknowledged"], 7);
        assert_eq!(report["epoch"], 5);
        assert_eq!(report["spool_batches"], 2);
        assert_eq!(report.as_object().unwrap().len(), totals.list().len() + 4);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
