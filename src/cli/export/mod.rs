//! `granary export`: writes documents of a running daemon to files of other formats.
//!
//! The daemon returns some series at a time. After each page, the file is synced, and then a state
//! file beside it records the length and the next series. An interrupted export truncates the file
//! to that length and continues there.

mod format;
mod page;
mod parquet;
mod readings;
mod rows;
mod samples;

use std::{
    fs,
    io::{self, Read, Seek, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, bail};
use clap::Args;
use serde::{Deserialize, Serialize};

use self::{format::Format, page::Page};
use super::{
    flags::{SelectorArgs, TimeArgs},
    http::{Daemon, Pair},
    progress,
    screen::print_error,
};
use crate::model::with_noun;

/// Write the documents of a running daemon to a file
#[derive(Debug, Args)]
#[command(after_help = "\
An interrupted export continues when the same command is run again.

Examples:
  granary export --metric page_views --range 30d --resolution 1h --format bson --output views.bson
  granary export --tags host=web1 --range 1d --resolution 1m --format csv --output -
  granary export --range 2d --resolution 1m --format samples --output all.samples")]
pub(super) struct ExportArgs {
    #[command(flatten)]
    daemon: Daemon,
    #[command(flatten)]
    selector: SelectorArgs,
    /// 1m, 5m, 1h, 1d or another granularity of the daemon; auto chooses by range
    #[arg(long, default_value = "auto")]
    resolution: String,
    #[command(flatten)]
    times: TimeArgs,
    /// Include preallocated documents without samples (bson and jsonl)
    #[arg(long)]
    shells: bool,
    /// Format of the file
    #[arg(long)]
    format: Format,
    /// Path of the file; - is standard output, where an interrupted export cannot continue
    #[arg(long)]
    output: PathBuf,
}

/// The progress of an export.
#[derive(Debug, Default, Serialize, Deserialize)]
struct ExportState {
    /// The arguments of the command: another command does not continue this file.
    arguments: String,
    bytes: u64,
    rows: u64,
    /// The number of series of native histograms whose buckets were left out.
    #[serde(default)]
    histograms: u64,
    /// The number of slots that an import does not restore exactly: they get another total or
    /// number of samples, or have only numbers.
    #[serde(default)]
    inexact: u64,
    /// The metric of the last row.
    metric: String,
    /// The parameters of the following pages.
    next: Option<Vec<(String, String)>>,
    /// True when everything is written.
    complete: bool,
}

impl ExportArgs {
    fn pairs(&self) -> Vec<Pair> {
        let mut pairs: Vec<_> = self.selector.pairs().collect();
        pairs.push(("resolution", self.resolution.clone()));
        pairs.extend(self.times.pairs());
        pairs.extend(self.shells_pair());
        pairs
    }

    fn shells_pair(&self) -> Option<Pair> {
        self.shells.then(|| ("shells", true.to_string()))
    }

    /// Returns the parameters of the next page, with the values that the first page fixed.
    fn next_pairs(&self, state: &ExportState) -> Vec<Pair> {
        let Some(next) = &state.next else { return self.pairs() };
        let fixed_names = ["start", "end", "resolution", "after", "upto"];
        let named = |name: &str| fixed_names.into_iter().find(|fixed| *fixed == name);
        let mut pairs: Vec<_> =
            next.iter().filter_map(|(name, value)| Some((named(name)?, value.clone()))).collect();
        pairs.extend(self.selector.pairs());
        pairs.extend(self.shells_pair());
        pairs
    }
}

pub(super) fn export(args: &ExportArgs) -> anyhow::Result<ExitCode> {
    let arguments = format!("{:?} {} {:?}", args.pairs(), args.daemon.url, args.format);
    if args.shells && !matches!(args.format, Format::Bson | Format::Jsonl) {
        bail!("--shells needs --format bson or jsonl: the other formats have no empty slots");
    }
    if args.output == Path::new("-") {
        if args.format == Format::Parquet {
            bail!("a Parquet file cannot be written to standard output: name a file with --output");
        }
        let mut out = io::stdout().lock();
        let mut state = ExportState { arguments, ..ExportState::default() };
        run(args, &mut state, |bytes, _| Ok(out.write_all(bytes)?))?;
        return Ok(ExitCode::SUCCESS);
    }
    let partial = with_suffix(&args.output, ".partial");
    let state_file = with_suffix(&args.output, ".partial.state");
    let mut state = read_state(&state_file, &arguments)?;
    if !(state.complete && !partial.exists() && args.output.exists()) {
        let mut file = open_partial(&partial, &state_file, &state)?;
        run(args, &mut state, |bytes, state| {
            file.write_all(bytes)?;
            file.sync_data()?;
            let fresh = with_suffix(&state_file, ".new");
            let mut written = fs::File::create(&fresh)?;
            written.write_all(&serde_json::to_vec(state)?)?;
            written.sync_data()?;
            Ok(fs::rename(fresh, &state_file)?)
        })?;
        let name = || format!("name {}", args.output.display());
        if args.format == Format::Parquet {
            let whole = with_suffix(&args.output, ".partial.whole");
            file.seek(io::SeekFrom::Start(0))?;
            parquet::join(&mut io::BufReader::new(file), fs::File::create(&whole)?)?;
            fs::rename(&whole, &args.output).with_context(name)?;
            fs::remove_file(&partial)?;
        } else {
            fs::rename(&partial, &args.output).with_context(name)?;
        }
    }
    fs::remove_file(state_file)?;
    Ok(ExitCode::SUCCESS)
}

/// Opens the file of an interrupted export, and removes bytes after its recorded length.
fn open_partial(
    partial: &Path,
    state_file: &Path,
    state: &ExportState,
) -> anyhow::Result<fs::File> {
    let mut file = fs::OpenOptions::new()
        .create(true)
        .read(true)
        .write(true)
        .truncate(false)
        .open(partial)
        .with_context(|| format!("open {}", partial.display()))?;
    if file.metadata()?.len() < state.bytes {
        bail!(
            "{} is shorter than its recorded length: remove it and {}",
            partial.display(),
            state_file.display()
        );
    }
    file.set_len(state.bytes)?;
    file.seek(io::SeekFrom::End(0))?;
    if state.bytes > 0 {
        print_error(&format!("continuing after {}", with_noun(state.rows, "row")));
    }
    Ok(file)
}

fn run(
    args: &ExportArgs,
    state: &mut ExportState,
    mut keep: impl FnMut(&[u8], &ExportState) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let bar = progress::bar(0);
    let mut bytes = Vec::new();
    while !state.complete {
        bytes.clear();
        let body = args.daemon.get("export", &args.next_pairs(state))?;
        let page: Page = serde_json::from_str(&body).context("read a page of the export")?;
        args.format.write(&page, state, &mut bytes)?;
        state.complete = page.after.is_none();
        if state.complete {
            bytes.extend_from_slice(args.format.end());
        }
        let number = |name: &str, number: String| (name.to_owned(), number);
        let mut next = vec![
            number("start", page.start.to_string()),
            number("end", page.end.to_string()),
            number("resolution", page.resolution.clone()),
        ];
        next.extend(page.after.map(|after| number("after", after)));
        next.extend(page.upto.map(|upto| number("upto", upto)));
        state.next = Some(next);
        state.bytes += bytes.len() as u64;
        keep(&bytes, state)?;
        bar.set_length(page.total);
        bar.set_position(page.done);
        bar.set_message(format!("series, {} rows", state.rows));
    }
    bar.finish_and_clear();
    print_error(&format!("{}, {}", with_noun(state.rows, "row"), with_noun(state.bytes, "byte")));
    if state.histograms > 0 {
        let series = with_noun(state.histograms, "series");
        print_error(&format!(
            "{series} of native histograms without their buckets: the file has their numbers of \
             observations; --format samples writes buckets"
        ));
    }
    if state.inexact > 0 {
        let slots = with_noun(state.inexact, "slot");
        print_error(&format!(
            "an import does not exactly restore {slots} of histograms: they get another total or \
             number of samples, or none if the slot has only numbers"
        ));
    }
    Ok(())
}

/// Reads the state of an interrupted run of the same command, or returns a new state.
fn read_state(state_file: &Path, arguments: &str) -> anyhow::Result<ExportState> {
    let mut text = String::new();
    match fs::File::open(state_file) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
            return Ok(ExportState { arguments: arguments.to_owned(), ..ExportState::default() });
        }
        file => file?.read_to_string(&mut text)?,
    };
    let state: ExportState = serde_json::from_str(&text)
        .with_context(|| format!("{} is damaged; remove it to start over", state_file.display()))?;
    if state.arguments != arguments {
        bail!("{} belongs to another export; remove it to start over", state_file.display());
    }
    Ok(state)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
