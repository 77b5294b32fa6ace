//! `granary import`: sends files of other stores to a running daemon, each sample once.
//!
//! An import keeps no state of its own: the content of a file is part of the sender's name, its
//! samples are always cut into the same numbered batches, and the daemon recognizes accepted
//! numbers. An interrupted import is therefore simply repeated.

mod delivery;
mod files;
mod identity;
mod overlap;
mod parcel;
mod progress;
mod reading;
mod request;
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
use super::{flags::SelectorArgs, http::Daemon, screen::print_error};
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
  Graphite, with the metric derived from the path below the folder:
    granary import --template 'servers.* _.host.metric*' /var/lib/graphite/whisper
  CSV with the columns time, metric, value and tags:
    granary import samples.csv
  CSV with the columns when, room and celsius, as the metric room_celsius with the tag room:
    granary import --csv-time when --csv-metric room_celsius --csv-value celsius rooms.csv
  A part of a file, checked before it is sent:
    granary import --max-time 2026-11-21 --dry-run samples.csv
  Bodies of remote-write requests, one per file, as they were sent:
    granary import --format remote-write bodies/
  MongoDB collections with time series in their documents:
    mongodump --db metrics --out dump && granary import --format mongodump dump/metrics
  Samples of another Granary daemon, with histograms:
    granary export --range 2d --resolution 1m --format samples --output all.samples
    granary import --url http://new:7117 all.samples

To continue an interrupted import, run it again with the same options: the daemon recognizes
accepted samples and skips them.";

/// Import files of Prometheus, InfluxDB, Graphite, MongoDB or CSV into a running daemon
///
/// Every sample is accepted once, even when an import is repeated or interrupted: a file is
/// identified by its content and by the options that change how it is read. Files may be
/// compressed with gzip or zstd. Nothing is sent when the daemon already has samples of the same
/// series at the same times. Exit codes: 0 when everything was imported, 2 when samples were
/// refused, 1 on failure.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ImportArgs {
    /// Files, or folders that are read recursively
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    daemon: Daemon,
    /// Format of the files [default: by their names: .om .prom .txt, .lp .line .influx, .wsp, .csv
    /// .tsv, .snappy .sz, .bson, .samples]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Kind of all series [default: from the file, else counters by name: `_total`, `_count`,
    /// `_sum`, `_bucket`; else gauges]
    #[arg(long)]
    kind: Option<Kind>,
    /// Influx: unit of the timestamps: ns, us, ms, s, m or h
    #[arg(long, default_value = "ns", value_parser = precision)]
    precision: Precision,
    /// Whisper: template that turns paths into a metric and tags, as in the setting
    /// `graphite.templates`; the first template with a matching filter applies
    #[arg(long, value_name = "'FILTER PARTS'")]
    template: Vec<String>,
    /// Whisper: folder whose relative paths are metric names [default: the given folder]
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// CSV: column of the time, in RFC 3339, Unix seconds or milliseconds
    #[arg(long, value_name = "COL")]
    csv_time: Option<String>,
    /// CSV: column with the metric of each line, or else the name of the metric
    #[arg(long, value_name = "COL|NAME")]
    csv_metric: Option<String>,
    /// CSV: columns of values; several become a metric each, `METRIC_COL`
    #[arg(long, value_name = "COL", value_delimiter = ',')]
    csv_value: Vec<String>,
    /// CSV: columns of tags [default: all others]
    #[arg(long, value_name = "COL", value_delimiter = ',')]
    csv_tags: Option<Vec<String>>,
    /// CSV: separator of columns [default: a comma; a tab for .tsv]
    #[arg(long, value_name = "CHAR", value_parser = separator)]
    csv_separator: Option<u8>,
    #[command(flatten)]
    selector: SelectorArgs,
    /// Only samples at or after this time: 2026-11-21T08:00:00Z, 2026-11-21 or Unix seconds
    #[arg(long, value_name = "TIME", value_parser = time_of)]
    min_time: Option<UnixMillis>,
    /// Only samples before this time
    #[arg(long, value_name = "TIME", value_parser = time_of)]
    max_time: Option<UnixMillis>,
    /// Send samples even at times at which the daemon already has samples of the same series; both
    /// count
    #[arg(long)]
    overlap: bool,
    /// Show metrics, kinds, times and tags, and send nothing
    #[arg(long)]
    dry_run: bool,
    /// Duration of retries when the daemon cannot be reached
    #[arg(long, default_value = "10m", value_name = "SPAN")]
    retry_for: Span,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
}

/// The format of a file.
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
    /// Documents of a MongoDB collection, as mongodump writes them.
    #[value(name = "mongodump")]
    MongoDump,
    /// Samples in JSON, one per line, as granary export writes them.
    Samples,
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

pub(super) fn time_of(word: &str) -> Result<UnixMillis, String> {
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

/// Returns a message when the daemon already has samples of the same series at the same times.
fn overlap(
    args: &ImportArgs,
    inputs: &[Input],
    options: &Options,
    names: SenderNames,
) -> anyhow::Result<Option<String>> {
    let survey = reading::survey(inputs, options, names);
    let overlap = Overlap::find(&args.daemon, &survey).context(
        "cannot check which samples the daemon already has; --overlap imports without this check",
    )?;
    Ok(overlap.message())
}

pub(super) fn import(args: &ImportArgs) -> anyhow::Result<ExitCode> {
    let Span::Fixed(retry_ms) = args.retry_for else {
        anyhow::bail!("--retry-for must be in days or smaller units");
    };
    let options = args.options()?;
    let inputs = files::find(&args.files, &options)?;
    anyhow::ensure!(!inputs.is_empty(), "found no files to import; see `granary import --help`");
    let (names, delivery) = if args.dry_run {
        (SenderNames::default(), None)
    } else {
        let names = SenderNames::fetch(&args.daemon)?;
        if !args.overlap
            && let Some(message) = overlap(args, &inputs, &options, names.clone())?
        {
            anyhow::bail!("nothing was sent: {message}");
        }
        let retry_for = Duration::from_millis(retry_ms.max(0) as u64);
        (names, Some(delivery::Delivery::new(&args.daemon, retry_for)?))
    };
    let mut summary = Summary::new(&inputs, args.dry_run);
    let imported = reading::import(&inputs, &options, names, delivery, &mut summary);
    if imported.is_ok() || summary.has_answers() {
        summary.print(args.json)?;
    }
    if args.dry_run {
        let found = SenderNames::fetch(&args.daemon)
            .and_then(|names| overlap(args, &inputs, &options, names))
            .unwrap_or_else(|cause| {
                Some(format!("the files were not compared with the daemon's data: {cause:#}"))
            });
        if let Some(message) = found {
            print_error(&message);
        }
    }
    imported.context(
        "the import is incomplete; run it again: accepted samples are not counted twice",
    )?;
    let removed_messages = summary.removed_series_messages(&inputs);
    for message in &removed_messages {
        print_error(message);
    }
    Ok(match (summary.files_failed, summary.refused()) {
        _ if !removed_messages.is_empty() => ExitCode::FAILURE,
        (0, 0) => ExitCode::SUCCESS,
        (0, _) => ExitCode::from(2),
        _ => ExitCode::FAILURE,
    })
}
