//! The files of an import: their formats, and how they are opened.

use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader, Read},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use anyhow::{Context, bail};
use flate2::read::MultiGzDecoder;

use super::Format;
use crate::{
    import::{
        csv::Columns, mongodump::collection_of, remote_write, selection::Selection,
        whisper::metric_path,
    },
    ingest::{graphite::Template, influx::Precision},
};

/// The size of the read buffer.
pub(super) const BUFFER_BYTES: usize = 256 * 1024;
/// The maximum size of a file that is read as a whole.
const WHOLE_BYTES_MAX: u64 = 256 << 20;
const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The options that apply to all files.
#[derive(Debug)]
pub(super) struct Options {
    pub(super) format: Option<Format>,
    pub(super) selection: Selection,
    pub(super) precision: Precision,
    pub(super) templates: Vec<Template>,
    /// The templates as they were typed.
    pub(super) template_texts: Vec<String>,
    pub(super) root: Option<PathBuf>,
    pub(super) columns: Columns,
    pub(super) separator_given: bool,
}

/// A file of an import.
#[derive(Debug)]
pub(super) struct Input {
    pub(super) path: PathBuf,
    pub(super) format: Format,
    pub(super) bytes: u64,
    /// The metric path of a whisper file, or the collection of a dump; empty for other formats.
    pub(super) metric: String,
}

/// Returns the files of the given paths; files of a folder are sorted by name.
pub(super) fn find(paths: &[PathBuf], options: &Options) -> anyhow::Result<Vec<Input>> {
    let mut out = Vec::new();
    for path in paths {
        let metadata = fs::metadata(path).with_context(|| format!("open {}", path.display()))?;
        anyhow::ensure!(
            metadata.is_dir() || metadata.is_file(),
            "{} is not a regular file; files are read twice, so write its content to a file first",
            path.display()
        );
        if metadata.is_file() {
            let Some(format) = options.format.or_else(|| format_of(path)) else {
                bail!("{} has no known extension; set its format with --format", path.display());
            };
            let root = options.root.as_deref().or_else(|| path.parent()).unwrap_or(path);
            out.push(input(path.clone(), format, root, metadata.len()));
            continue;
        }
        let root = options.root.as_deref().unwrap_or(path);
        for (file, bytes) in files_below(path)? {
            let named = format_of(&file);
            // Folders of whisper files and of mongodump also contain other files.
            let format = match options.format {
                Some(format @ (Format::Whisper | Format::MongoDump)) => {
                    named.filter(|named| *named == format)
                }
                given => given.or(named),
            };
            out.extend(format.map(|format| input(file, format, root, bytes)));
        }
    }
    Ok(out)
}

fn input(path: PathBuf, format: Format, root: &Path, bytes: u64) -> Input {
    let below = path.strip_prefix(root).unwrap_or(&path).to_string_lossy();
    let metric = match format {
        Format::Whisper => metric_path(below.trim_start_matches('/')),
        Format::MongoDump => collection_of(below.rsplit('/').next().unwrap_or_default()),
        Format::OpenMetrics
        | Format::Influx
        | Format::Csv
        | Format::RemoteWrite
        | Format::Samples => String::new(),
    };
    Input { path, format, bytes, metric }
}

fn files_below(folder: &Path) -> anyhow::Result<Vec<(PathBuf, u64)>> {
    let mut out = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries =
            fs::read_dir(&folder).with_context(|| format!("read folder {}", folder.display()))?;
        for entry in entries {
            let entry = entry.with_context(|| format!("read folder {}", folder.display()))?;
            // Links to folders are not followed, because they may form cycles.
            let kind = entry.file_type().context("read folder")?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if let Ok(metadata) = fs::metadata(entry.path())
                && metadata.is_file()
            {
                out.push((entry.path(), metadata.len()));
            }
        }
    }
    out.sort();
    Ok(out)
}

fn format_of(path: &Path) -> Option<Format> {
    let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
    let name = [".gz", ".zst"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
    Some(match name.rsplit_once('.')?.1 {
        "om" | "prom" | "txt" | "openmetrics" => Format::OpenMetrics,
        "lp" | "line" | "influx" => Format::Influx,
        "wsp" => Format::Whisper,
        "csv" | "tsv" => Format::Csv,
        "snappy" | "sz" => Format::RemoteWrite,
        "bson" => Format::MongoDump,
        "samples" => Format::Samples,
        _ => return None,
    })
}

impl Input {
    /// Returns the columns of a CSV file.
    pub(super) fn columns(&self, options: &Options) -> Columns {
        let mut columns = options.columns.clone();
        let name = self.path.to_string_lossy().to_ascii_lowercase();
        if !options.separator_given && name.split('.').any(|part| part == "tsv") {
            columns.separator = b'\t';
        }
        columns
    }

    /// Opens and decompresses the file, and counts the bytes that are read.
    pub(super) fn open(&self, read: &Arc<AtomicU64>) -> io::Result<Box<dyn BufRead>> {
        let file =
            CountingReader { file: File::open(&self.path)?.take(self.bytes), read: read.clone() };
        let mut file = BufReader::with_capacity(BUFFER_BYTES, file);
        let head = file.fill_buf()?;
        Ok(if head.starts_with(&GZIP) {
            Box::new(BufReader::with_capacity(BUFFER_BYTES, MultiGzDecoder::new(file)))
        } else if head.starts_with(&ZSTD) {
            let decoder = zstd::stream::read::Decoder::with_buffer(file)?;
            Box::new(BufReader::with_capacity(BUFFER_BYTES, decoder))
        } else {
            Box::new(file)
        })
    }

    /// Reads the whole file. Bodies of requests are decompressed only when the file's name ends in
    /// `.gz` or `.zst`, because a body may start with any bytes.
    pub(super) fn read_whole(&self, read: &Arc<AtomicU64>) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        let compressed = |end: &str| self.path.to_string_lossy().ends_with(end);
        let plain = self.format == Format::RemoteWrite && !compressed(".gz") && !compressed(".zst");
        let limit = match self.format {
            Format::RemoteWrite => remote_write::BODY_BYTES_MAX as u64,
            Format::OpenMetrics
            | Format::Influx
            | Format::Csv
            | Format::Whisper
            | Format::Samples
            | Format::MongoDump => WHOLE_BYTES_MAX,
        };
        let length = if plain {
            let file = CountingReader {
                file: File::open(&self.path)?.take(self.bytes),
                read: read.clone(),
            };
            file.take(limit + 1).read_to_end(&mut out)?
        } else {
            self.open(read)?.take(limit + 1).read_to_end(&mut out)?
        };
        if length as u64 > limit {
            let problem = format!("larger than {limit} bytes, the limit for files of this format");
            return Err(io::Error::other(problem));
        }
        Ok(out)
    }
}

struct CountingReader {
    file: io::Take<File>,
    read: Arc<AtomicU64>,
}

impl Read for CountingReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns options without any value.
    pub(in crate::cli::import) fn options() -> Options {
        Options {
            format: None,
            selection: Selection::default(),
            precision: Precision::Nanoseconds,
            templates: Vec::new(),
            template_texts: Vec::new(),
            root: None,
            columns: Columns::default(),
            separator_given: false,
        }
    }

    #[test]
    fn formats_follow_from_names_and_metrics_from_paths() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a/b.wsp", "a/c/d.wsp", "e.lp.gz", "f.TSV", "g.txt", "h.unknown"] {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        let found = find(&[dir.path().to_owned()], &options()).unwrap();
        let found: Vec<_> =
            found.iter().map(|input| (input.format, input.metric.as_str())).collect();
        let expected = [
            (Format::Whisper, "a.b"),
            (Format::Whisper, "a.c.d"),
            (Format::Influx, ""),
            (Format::Csv, ""),
            (Format::OpenMetrics, ""),
        ];
        assert_eq!(found, expected);
        let file = dir.path().join("a/c/d.wsp");
        let with_root = Options { root: Some(dir.path().to_owned()), ..options() };
        assert_eq!(find(&[file], &with_root).unwrap()[0].metric, "a.c.d");
        let fault = find(&[dir.path().join("h.unknown")], &options()).unwrap_err();
        assert!(fault.to_string().contains("--format"));
    }
}
