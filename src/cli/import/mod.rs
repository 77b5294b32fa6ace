//! `granary import`: files of other stores, sent to a running daemon, each sample once.
//!
//! The daemon is the memory: a file's content is the sender's name, its samples are cut into the
//! same numbered batches each time, and what was accepted before is known by its number. So an
//! import that was interrupted is run again, with nothing to be kept beside the files.

mod delivery;
mod files;
mod progress;
mod reading;
mod summary;

use std::{path::PathBuf, process::ExitCode, time::Duration};

use anyhow::Context;
use clap::{Args, ValueEnum};

use self::{files::Options, summary::Summary};
use crate::{
    cli::http::Daemon,
    import::csv::Columns,
    ingest::{graphite::Template, influx::Precision},
    model::{Kind, Span},
};

const EXAMPLES: &str = "\
Examples:
  Prometheus (dump-openmetrics where promtool has it, else dump):
    promtool tsdb dump /var/lib/prometheus > dump.om && granary import dump.om
  InfluxDB 1.x:
    influx_inspect export -datadir ... -waldir ... -out dump.lp && granary import dump.lp
  Graphite, the metric taken from the path below the folder:
    granary import --template 'servers.* _.host.metric*' /var/lib/graphite/whisper
  CSV with the columns time, metric, value and tags, or with columns of your own:
    granary import samples.csv
    granary import --csv-time when --csv-metric room --csv-value temperature,humidity \\
        --csv-tags sensor rooms.csv
  Bodies of remote-write requests, one a file, as they were sent:
    granary import --format remote-write bodies/

An import that was interrupted is run again with the same options: what was accepted before is
known and changes nothing.";

/// Import files of Prometheus, InfluxDB, Graphite or CSV into a running daemon
///
/// Every sample is accepted once, also when an import is repeated or interrupted: a file is known
/// by its content and by the options that change how it is read. Files compressed with gzip or
/// zstd are read as they are. Ends with 0 when all was imported, 2 when samples were refused,
/// 1 when something failed.
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
    /// CSV: column that names the metric, or else the name itself
    #[arg(long, value_name = "COL|NAME")]
    csv_metric: Option<String>,
    /// CSV: columns of values; several make metrics of their own, `METRIC_COL`
    #[arg(long, value_name = "COL", value_delimiter = ',')]
    csv_value: Vec<String>,
    /// CSV: columns that are tags [default: all others]
    #[arg(long, value_name = "COL", value_delimiter = ',')]
    csv_tags: Option<Vec<String>>,
    /// CSV: what separates columns [default: a comma; a tab for .tsv]
    #[arg(long, value_name = "CHAR", value_parser = separator)]
    csv_separator: Option<u8>,
    /// Read and count, send nothing
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

pub(super) fn import(args: &ImportArgs) -> anyhow::Result<ExitCode> {
    let Span::Fixed(retry_ms) = args.retry_for else {
        anyhow::bail!("--retry-for must be in days or smaller units");
    };
    let parsed = args.template.iter().map(|text| Template::parse(text));
    let options = Options {
        format: args.format,
        kind: args.kind,
        precision: args.precision,
        templates: parsed.collect::<Result<_, _>>().map_err(anyhow::Error::msg)?,
        template_texts: args.template.clone(),
        root: args.root.clone(),
        columns: Columns {
            time: args.csv_time.clone(),
            metric: args.csv_metric.clone(),
            values: args.csv_value.clone(),
            tags: args.csv_tags.clone(),
            separator: args.csv_separator.unwrap_or(b','),
        },
        separator_given: args.csv_separator.is_some(),
    };
    let inputs = files::find(&args.files, &options)?;
    anyhow::ensure!(!inputs.is_empty(), "no files to import: see `granary import --help`");
    let delivery = (!args.dry_run).then(|| {
        delivery::Delivery::new(&args.daemon.url, Duration::from_millis(retry_ms.max(0) as u64))
    });
    let mut summary = Summary::new(&inputs, args.dry_run);
    let imported = reading::import(&inputs, &options, delivery, &mut summary);
    if imported.is_ok() || summary.has_answers() {
        summary.print(args.json)?;
    }
    imported.context("the import is not complete; run it again: what was accepted counts once")?;
    Ok(match (summary.files_failed, summary.refused()) {
        (0, 0) => ExitCode::SUCCESS,
        (0, _) => ExitCode::from(2),
        _ => ExitCode::FAILURE,
    })
}
