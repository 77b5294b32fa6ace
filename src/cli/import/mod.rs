//! `granary import`: files of other stores, sent to a running daemon, each sample once.
//!
//! The daemon is the memory: a file's content is the sender's name, its samples are cut into the
//! same numbered batches each time, and what was accepted before is known by its number. So an
//! import that was interrupted is run again, with nothing to be kept beside the files.

mod delivery;
mod files;
mod overlap;
mod progress;
mod reading;
mod senders;
mod summary;
mod survey;

use std::{path::PathBuf, process::ExitCode, time::Duration};

use anyhow::Context;
use clap::{Args, ValueEnum};

use self::{
    files::{Input, Options},
    overlap::Overlap,
    senders::SenderNames,
    summary::Summary,
};
use super::{flags::SelectorArgs, http::Daemon, screen::complain};
use crate::{
    import::{csv::Columns, selection::Selection, time},
    ingest::{graphite::Template, influx::Precision},
    model::{Kind, Span, UnixMillis, tag_pairs},
};

const EXAMPLES: &str = "\
Examples:
  Prometheus (dump-openmetrics where promtool has it, else dump):
    promtool tsdb dump /var/lib/prometheus > dump.om && granary import dump.om
  InfluxDB 1.x:
    influx_inspect export -datadir ... -waldir ... -out dump.lp && granary import dump.lp
  Graphite, the metric taken from the path below the folder:
    granary import --template 'servers.* _.host.metric*' /var/lib/graphite/whisper
  CSV with the columns time, metric, value and tags:
    granary import samples.csv
  CSV with the columns when, room and celsius, as the metric room_celsius with the tag room:
    granary import --csv-time when --csv-metric room_celsius --csv-value celsius rooms.csv
  A part of a file, looked at before it is sent:
    granary import --max-time 2026-11-21 --dry-run samples.csv
  Bodies of remote-write requests, one a file, as they were sent:
    granary import --format remote-write bodies/

An import that was interrupted is run again with the same options: what was accepted before is
known and changes nothing.";

/// Import files of Prometheus, InfluxDB, Graphite or CSV into a running daemon
///
/// Every sample is accepted once, also when an import is repeated or interrupted: a file is known
/// by its content and by the options that change how it is read. Files compressed with gzip or
/// zstd are read as they are. Nothing is sent where the daemon has samples of the same series at
/// the same times. Ends with 0 when all was imported, 2 when samples were refused, 1 when
/// something failed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ImportArgs {
    /// Files, or folders to be read with all that is below
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    daemon: Daemon,
    /// What the files are [default: by their names: .om .prom .txt, .lp .line .influx, .wsp, .csv
    /// .tsv, .snappy .sz]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// What all series are [default: what the file says, else counters by the name: `_total`,
    /// `_count`, `_sum`, `_bucket`; else gauges]
    #[arg(long)]
    kind: Option<Kind>,
    /// Influx: unit of the timestamps: ns, us, ms, s, m or h
    #[arg(long, default_value = "ns", value_parser = precision)]
    precision: Precision,
    /// Whisper: how paths become a metric and tags, as `graphite.templates` of the settings; the
    /// first whose filter fits is used
    #[arg(long, value_name = "'FILTER PARTS'")]
    template: Vec<String>,
    /// Whisper: folder below which a path is a metric's name [default: the folder that is given]
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// CSV: column of the time: RFC 3339, or Unix seconds or milliseconds
    #[arg(long, value_name = "COL")]
    csv_time: Option<String>,
    /// CSV: column that has each line's metric, or else the metric's name itself
    #[arg(long, value_name = "COL|NAME")]
    csv_metric: Option<String>,
    /// CSV: columns of values; several make a metric each, `METRIC_COL`
    #[arg(long, value_name = "COL", value_delimiter = ',')]
    csv_value: Vec<String>,
    /// CSV: columns that are tags [default: all others]
    #[arg(long, value_name = "COL", value_delimiter = ',')]
    csv_tags: Option<Vec<String>>,
    /// CSV: what separates columns [default: a comma; a tab for .tsv]
    #[arg(long, value_name = "CHAR", value_parser = separator)]
    csv_separator: Option<u8>,
    #[command(flatten)]
    selector: SelectorArgs,
    /// Only samples from this time on: 2026-11-21T08:00:00Z, 2026-11-21 or Unix seconds
    #[arg(long, value_name = "TIME", value_parser = time_of)]
    min_time: Option<UnixMillis>,
    /// Only samples before this time
    #[arg(long, value_name = "TIME", value_parser = time_of)]
    max_time: Option<UnixMillis>,
    /// Also send samples where the daemon has some of the same series: both count
    #[arg(long)]
    overlap: bool,
    /// Show metrics, kinds, times and tags, and send nothing
    #[arg(long)]
    dry_run: bool,
    /// How long a daemon that cannot be reached is tried again
    #[arg(long, default_value = "10m", value_name = "SPAN")]
    retry_for: Span,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
}

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// OpenMetrics or Prometheus text with timestamps.
    #[value(name = "openmetrics")]
    OpenMetrics,
    /// InfluxDB line protocol.
    Influx,
    /// Graphite's database files.
    Whisper,
    /// Comma-separated values with a header.
    Csv,
    /// Bodies of Prometheus remote-write requests.
    RemoteWrite,
}

fn precision(word: &str) -> Result<Precision, String> {
    Precision::from_word(word).ok_or_else(|| "use ns, us, ms, s, m or h".to_owned())
}

fn separator(word: &str) -> Result<u8, String> {
    match word.as_bytes() {
        b"\\t" => Ok(b'\t'),
        [byte] if byte.is_ascii() && *byte != b'"' => Ok(*byte),
        _ => Err("use one ASCII character, or \\t".to_owned()),
    }
}

fn time_of(word: &str) -> Result<UnixMillis, String> {
    time::any(word)
        .ok_or_else(|| "use RFC 3339, a date, or Unix seconds or milliseconds".to_owned())
}

impl ImportArgs {
    fn options(&self) -> anyhow::Result<Options> {
        let parsed = self.template.iter().map(|text| Template::parse(text));
        let tags = self.selector.tags.tags.as_deref().unwrap_or_default();
        let all = Selection::default();
        let times =
            self.min_time.unwrap_or(all.times.start)..self.max_time.unwrap_or(all.times.end);
        anyhow::ensure!(times.start < times.end, "--min-time is not before --max-time");
        Ok(Options {
            format: self.format,
            selection: Selection {
                kind: self.kind,
                metric: self.selector.metric.clone(),
                tags: tag_pairs(tags).map_err(anyhow::Error::msg)?,
                times,
            },
            precision: self.precision,
            templates: parsed.collect::<Result<_, _>>().map_err(anyhow::Error::msg)?,
            template_texts: self.template.clone(),
            root: self.root.clone(),
            columns: Columns {
                time: self.csv_time.clone(),
                metric: self.csv_metric.clone(),
                values: self.csv_value.clone(),
                tags: self.csv_tags.clone(),
                separator: self.csv_separator.unwrap_or(b','),
            },
            separator_given: self.csv_separator.is_some(),
        })
    }
}

/// A message about samples that the daemon has already at the times of files that are new to it.
fn overlap(
    args: &ImportArgs,
    inputs: &[Input],
    options: &Options,
    names: SenderNames,
) -> anyhow::Result<Option<String>> {
    let survey = reading::survey(inputs, options, names);
    let overlap = Overlap::find(&args.daemon, &survey).context(
        "cannot ask which samples the daemon has already; --overlap imports without asking",
    )?;
    Ok(overlap.message())
}

pub(super) fn import(args: &ImportArgs) -> anyhow::Result<ExitCode> {
    let Span::Fixed(retry_ms) = args.retry_for else {
        anyhow::bail!("--retry-for must be in days or smaller units");
    };
    let options = args.options()?;
    let inputs = files::find(&args.files, &options)?;
    anyhow::ensure!(!inputs.is_empty(), "no files to import: see `granary import --help`");
    let (names, delivery) = if args.dry_run {
        (SenderNames::default(), None)
    } else {
        let names = SenderNames::ask(&args.daemon)?;
        if !args.overlap
            && let Some(message) = overlap(args, &inputs, &options, names.clone())?
        {
            anyhow::bail!("nothing was sent: {message}");
        }
        let retry_for = Duration::from_millis(retry_ms.max(0) as u64);
        (names, Some(delivery::Delivery::new(&args.daemon.url, retry_for)))
    };
    let mut summary = Summary::new(&inputs, args.dry_run);
    let imported = reading::import(&inputs, &options, names, delivery, &mut summary);
    if imported.is_ok() || summary.has_answers() {
        summary.print(args.json)?;
    }
    if args.dry_run {
        let found = SenderNames::ask(&args.daemon)
            .and_then(|names| overlap(args, &inputs, &options, names))
            .unwrap_or_else(|cause| Some(format!("not compared with the daemon: {cause:#}")));
        if let Some(message) = found {
            complain(&message);
        }
    }
    imported.context("the import is not complete; run it again: what was accepted counts once")?;
    let gone = summary.gone(&inputs);
    for message in &gone {
        complain(message);
    }
    Ok(match (summary.files_failed, summary.refused()) {
        _ if !gone.is_empty() => ExitCode::FAILURE,
        (0, 0) => ExitCode::SUCCESS,
        (0, _) => ExitCode::from(2),
        _ => ExitCode::FAILURE,
    })
}
