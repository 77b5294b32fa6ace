//! The agent's own count of what became of its samples.

use std::{
    fs, io,
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

use crate::spool::Usage;

macro_rules! totals {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Totals since the agent started; written by both threads, read by anyone.
        #[derive(Debug, Default)]
        pub(crate) struct Totals { $($(#[$doc])* pub(crate) $name: Total,)* }

        impl Totals {
            /// Name and value of each total.
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
    /// Samples that the daemon accepted now.
    samples_acknowledged,
    /// Samples that the daemon had accepted before.
    samples_duplicate,
    /// Samples that the daemon will never accept.
    samples_refused,
    /// Batches dropped because the spool was full.
    batches_dropped,
    /// Samples of these.
    samples_dropped,
    /// Batches set aside because the daemon refused them as a whole.
    batches_rejected,
    /// Samples of these.
    samples_rejected,
    /// Requests made.
    requests,
    /// Requests to be made again.
    requests_failed,
}

/// A count that only grows.
#[derive(Debug, Default)]
pub(crate) struct Total(AtomicU64);

impl Total {
    /// Adds to the count.
    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// The count.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Writes the totals to `path`, whole or not at all.
pub(crate) fn write_report(
    path: &Path,
    agent: &str,
    epoch: i64,
    totals: &Totals,
    waiting: Usage,
) -> io::Result<()> {
    let mut report = serde_json::Map::new();
    report.insert("agent".to_owned(), agent.into());
    report.insert("epoch".to_owned(), epoch.into());
    for (name, value) in totals.list() {
        report.insert(name.to_owned(), value.into());
    }
    report.insert("spool_batches".to_owned(), waiting.batches.into());
    report.insert("spool_bytes".to_owned(), waiting.bytes.into());
    let mut text = serde_json::to_string_pretty(&report)?;
    text.push('\n');
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    fs::write(&beside, text)?;
    fs::rename(&beside, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_holds_every_total_and_leaves_no_other_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.json");
        let totals = Totals::default();
        totals.samples_acknowledged.add(7);
        for _ in 0..2 {
            write_report(&path, "a", 5, &totals, Usage { batches: 2, bytes: 9 }).unwrap();
        }
        let report: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(report["samples_acknowledged"], 7);
        assert_eq!(report["epoch"], 5);
        assert_eq!(report["spool_batches"], 2);
        assert_eq!(report.as_object().unwrap().len(), totals.list().len() + 4);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
