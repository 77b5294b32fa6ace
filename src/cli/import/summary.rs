//! The results of an import: counts, refused samples and messages.

use std::{
    collections::{BTreeMap, HashSet},
    io::Write,
    path::Path,
};

use comfy_table::{Table, presets::UTF8_BORDERS_ONLY};
use foldhash::fast::RandomState;
use granary_protocol::IngestAnswer;
use serde_json::json;
use xxhash_rust::xxh3::xxh3_128;

use super::{files::Input, parcel::Parcel, progress::Progress, survey::Survey};
use crate::{cli::screen, import::intake::SampleTally, model::with_noun, policy::RefusalReason};

/// The maximum number of refused samples that are shown.
pub(super) const EXAMPLES_MAX: usize = 10;

/// Counts of all files.
#[derive(Debug)]
pub(super) struct Summary {
    progress: Progress,
    /// The contents of the files, in a dry run.
    survey: Option<Survey>,
    pub(super) files: usize,
    pub(super) files_failed: u64,
    read: SampleTally,
    accepted: u64,
    duplicates: u64,
    refused: BTreeMap<String, u64>,
    /// Hashes of the series' keys.
    series: HashSet<u128, RandomState>,
    examples: usize,
    /// The number of samples in answered batches.
    done: u64,
    /// The number of text fields, which are not stored.
    text_fields: u64,
    /// The senders, with the file and the number of samples of each.
    senders: BTreeMap<String, (usize, u64)>,
    /// The number of samples by sender that were accepted before and whose series no longer exist.
    emptied: BTreeMap<String, u64>,
}

impl Summary {
    pub(super) fn new(inputs: &[Input], dry_run: bool) -> Self {
        Self {
            progress: Progress::new(inputs.iter().map(|input| input.bytes).sum()),
            survey: dry_run.then(Survey::default),
            files: inputs.len(),
            files_failed: 0,
            read: SampleTally::default(),
            accepted: 0,
            duplicates: 0,
            refused: BTreeMap::new(),
            series: HashSet::default(),
            examples: 0,
            done: 0,
            text_fields: 0,
            senders: BTreeMap::new(),
            emptied: BTreeMap::new(),
        }
    }

    /// Returns the number of refused samples.
    pub(super) fn refused(&self) -> u64 {
        self.refused.values().sum()
    }

    /// Returns true when the daemon answered at least once.
    pub(super) fn has_answers(&self) -> bool {
        self.done > 0
    }

    /// Counts a batch that was read.
    pub(super) fn add_batch(&mut self, parcel: &Parcel) {
        let (new, batch) = (&parcel.numbered.new, &parcel.numbered.batch);
        self.series.extend(new.iter().map(|series| xxh3_128(series.key.as_bytes())));
        if let Some(survey) = &mut self.survey {
            survey.add(parcel);
            return;
        }
        let samples = batch.refs.len() as u64;
        match self.senders.get_mut(&batch.agent) {
            Some((_, count)) => *count += samples,
            None => {
                self.senders.insert(batch.agent.clone(), (parcel.file, samples));
            }
        }
    }

    /// Counts the answer to a request with `samples`.
    pub(super) fn add_answer(&mut self, samples: u64, mut answer: IngestAnswer, read: u64) {
        // Batches are sent in order, so a batch far behind the latest was accepted before.
        let stale = RefusalReason::StaleNumber.as_str();
        self.duplicates += answer.duplicates + answer.refused.remove(stale).unwrap_or_default();
        self.accepted += answer.accepted;
        for (sender, count) in answer.emptied {
            *self.emptied.entry(sender).or_default() += count;
        }
        for (reason, count) in answer.refused {
            *self.refused.entry(reason).or_default() += count;
        }
        self.done += samples;
        self.progress.show(read, self.done);
    }

    /// Counts a file that was read, with the samples that were refused without asking the daemon.
    pub(super) fn add_file(&mut self, tally: SampleTally, refused: BTreeMap<RefusalReason, u64>) {
        self.read.samples += tally.samples;
        self.read.stale_markers += tally.stale_markers;
        self.read.left_out += tally.left_out;
        for (reason, count) in refused {
            // Other stores have text fields, so a file with text fields is not faulty.
            if reason == RefusalReason::TextField {
                self.text_fields += count;
                continue;
            }
            *self.refused.entry(reason.as_str().to_owned()).or_default() += count;
        }
    }

    /// Reports a file that could not be read to its end.
    pub(super) fn fail(&mut self, path: &Path, fault: &str) {
        self.files_failed += 1;
        self.progress.say(&format!("{}: {fault}", path.display()));
    }

    /// Shows a refused sample, up to a limit.
    pub(super) fn example(&mut self, location: &str, reason: &str, message: &str) {
        if self.examples < EXAMPLES_MAX {
            self.examples += 1;
            self.progress.say(&format!("{location}: {reason}: {message}"));
        }
    }

    /// Returns messages about files whose accepted samples are gone with their series.
    pub(super) fn gone(&self, inputs: &[Input]) -> Vec<String> {
        let message = |(sender, count): (&String, &u64)| {
            let (file, samples) = self.senders.get(sender)?;
            let path = inputs.get(*file)?.path.display();
            let remedy = if count == samples {
                format!(
                    "to import the file again: granary senders remove {}, then repeat the import",
                    quoted(sender)
                )
            } else {
                "to import these again: repeat the import with the --metric and --tags of the \
                 missing series"
                    .to_owned()
            };
            Some(format!(
                "{path}: {count} of {} were accepted before but no longer exist: their series were \
                 deleted, renamed or merged; {remedy}",
                with_noun(*samples, "sample")
            ))
        };
        self.emptied.iter().filter_map(message).collect()
    }

    /// Writes a line above the bar.
    pub(super) fn say(&self, line: &str) {
        self.progress.say(line);
    }

    /// Prints the summary.
    pub(super) fn print(&self, as_json: bool) -> anyhow::Result<()> {
        self.progress.finish();
        let seconds = self.progress.seconds();
        let rate = self.read.samples as f64 / seconds.max(0.001);
        let mut out = std::io::stdout().lock();
        if as_json {
            let summary = json!({
                "files": self.files, "files_failed": self.files_failed,
                "dry_run": self.survey.is_some(), "left_out": self.read.left_out,
                "text_fields": self.text_fields, "emptied": self.emptied.values().sum::<u64>(),
                "metrics": self.survey.as_ref().map(Survey::json), "series": self.series.len(), "samples": self.read.samples,
                "stale_markers": self.read.stale_markers, "accepted": self.accepted,
                "duplicates": self.duplicates, "refused": self.refused, "seconds": seconds,
                "samples_per_second": rate,
            });
            writeln!(out, "{summary}")?;
            return Ok(());
        }
        let mut table = Table::new();
        table.load_preset(UTF8_BORDERS_ONLY);
        let mut row = |name: &str, value: String| {
            table.add_row([name.to_owned(), value]);
        };
        row("files", self.files.to_string());
        row("files that could not be read completely", self.files_failed.to_string());
        row("series", self.series.len().to_string());
        row("samples read", self.read.samples.to_string());
        if self.read.left_out > 0 {
            row(
                "excluded by --metric, --tags, --min-time or --max-time",
                self.read.left_out.to_string(),
            );
        }
        if self.survey.is_some() {
            row("accepted", "nothing was sent (--dry-run)".to_owned());
        } else {
            row("accepted", self.accepted.to_string());
            row("accepted before", self.duplicates.to_string());
        }
        for (reason, count) in &self.refused {
            let known = RefusalReason::ALL.iter().find(|known| known.as_str() == reason);
            let remedy = known.map_or("", |reason| reason.remedy());
            row(&format!("refused: {reason}"), format!("{count} ({remedy})"));
        }
        if self.text_fields > 0 {
            row("text fields (not stored)", self.text_fields.to_string());
        }
        if self.read.stale_markers > 0 {
            row("stale markers (not samples)", self.read.stale_markers.to_string());
        }
        row("seconds", format!("{seconds:.1}"));
        row("samples/s", format!("{rate:.0}"));
        if let Some(survey) = &self.survey {
            writeln!(out, "{}", screen::lines(&survey.table()))?;
        }
        writeln!(out, "{table}")?;
        Ok(())
    }
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", screen::text(word).replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_far_behind_the_latest_was_accepted_before() {
        let mut summary = Summary::new(&[], false);
        let refused = [("stale_number", 30), ("too_old", 2)];
        let refused = refused.map(|(reason, count)| (reason.to_owned(), count)).into();
        let answer =
            IngestAnswer { accepted: 5, duplicates: 7, refused, ..IngestAnswer::default() };
        summary.add_answer(44, answer, 0);
        assert_eq!((summary.accepted, summary.duplicates, summary.refused()), (5, 37, 2));
    }
}
