//! Which files are imported, as what, and under which sender's name.

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
use xxhash_rust::xxh3::Xxh3;

use super::{Format, senders::SENDERS};
use crate::{
    import::{csv::Columns, remote_write, selection::Selection, whisper::metric_path},
    ingest::{graphite::Template, influx::Precision},
    model::Kind,
};

/// Bytes read at a time.
const BUFFER_BYTES: usize = 256 * 1024;
/// Bytes of a file that is read whole: a whisper file, or a body of a request.
const WHOLE_BYTES_MAX: u64 = 256 << 20;
const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// How files are read.
#[derive(Debug)]
pub(super) struct Options {
    pub(super) format: Option<Format>,
    pub(super) selection: Selection,
    pub(super) precision: Precision,
    pub(super) templates: Vec<Template>,
    /// The same as they were written.
    pub(super) template_texts: Vec<String>,
    pub(super) root: Option<PathBuf>,
    pub(super) columns: Columns,
    pub(super) separator_given: bool,
}

/// A file to be imported.
#[derive(Debug)]
pub(super) struct Input {
    pub(super) path: PathBuf,
    pub(super) format: Format,
    pub(super) bytes: u64,
    /// Of a whisper file: the metric's path.
    pub(super) metric: String,
}

/// Finds the files, those of a folder in order of their names.
pub(super) fn find(paths: &[PathBuf], options: &Options) -> anyhow::Result<Vec<Input>> {
    let mut out = Vec::new();
    for path in paths {
        let metadata = fs::metadata(path).with_context(|| format!("open {}", path.display()))?;
        anyhow::ensure!(
            metadata.is_dir() || metadata.is_file(),
            "{} is no file on disk; files are read twice, so write it to one first",
            path.display()
        );
        if metadata.is_file() {
            let Some(format) = options.format.or_else(|| format_of(path)) else {
                bail!("what is {}? say --format", path.display());
            };
            let root = options.root.as_deref().or_else(|| path.parent()).unwrap_or(path);
            out.push(input(path.clone(), format, root, metadata.len()));
            continue;
        }
        let root = options.root.as_deref().unwrap_or(path);
        for (file, bytes) in files_below(path)? {
            let named = format_of(&file);
            // Other files lie between whisper files.
            let format = match options.format {
                Some(Format::Whisper) => named.filter(|own| *own == Format::Whisper),
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
        Format::OpenMetrics | Format::Influx | Format::Csv | Format::RemoteWrite => String::new(),
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
            // Links to folders are not followed: they may go in circles.
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
        _ => return None,
    })
}

impl Input {
    /// The columns of a CSV file.
    pub(super) fn columns(&self, options: &Options) -> Columns {
        let mut columns = options.columns.clone();
        let name = self.path.to_string_lossy().to_ascii_lowercase();
        if !options.separator_given && name.split('.').any(|part| part == "tsv") {
            columns.separator = b'\t';
        }
        columns
    }

    /// What the sender's name begins with: 128 bits of what the file holds and of what changes how it
    /// is read.
    pub(super) fn identity(&self, options: &Options) -> io::Result<String> {
        let mut hash = Xxh3::new();
        let mut file = File::open(&self.path)?.take(self.bytes);
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            match file.read(&mut buffer)? {
                0 => break,
                read => hash.update(buffer.get(..read).unwrap_or_default()),
            }
        }
        hash.update(self.reading(options).as_bytes());
        Ok(format!("{SENDERS}{:032x}", hash.digest128()))
    }

    /// In words that never change: another word makes another sender. Where a change of a decoder
    /// or of the batches' bounds gives a file other batches, the number must change.
    fn reading(&self, options: &Options) -> String {
        let kind = options.selection.kind.map_or("by name", Kind::as_str);
        let mut words = vec!["granary import 1", kind];
        let columns = self.columns(options);
        let separator = columns.separator.to_string();
        match self.format {
            Format::OpenMetrics => words.push("openmetrics"),
            Format::RemoteWrite => words.push("remote-write"),
            Format::Influx => words.extend(["influx", precision_word(options.precision)]),
            Format::Whisper => {
                words.extend(["whisper", &self.metric]);
                words.extend(options.template_texts.iter().map(String::as_str));
            }
            Format::Csv => {
                words.extend(["csv", &separator, columns.time.as_deref().unwrap_or_default()]);
                words.extend(["metric", columns.metric.as_deref().unwrap_or_default(), "values"]);
                words.extend(columns.values.iter().map(String::as_str));
                words.push(if columns.tags.is_some() { "tags" } else { "all tags" });
                words.extend(columns.tags.iter().flatten().map(String::as_str));
            }
        }
        let selected = options.selection.words();
        words.extend(selected.iter().map(String::as_str));
        words.join("\0")
    }

    /// The file's bytes, decompressed; what is read of it is counted.
    pub(super) fn open(&self, read: &Arc<AtomicU64>) -> io::Result<Box<dyn BufRead>> {
        let file = Counted { file: File::open(&self.path)?.take(self.bytes), read: read.clone() };
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

    /// The whole file. Bodies of requests are never taken for compressed ones: they may begin
    /// with any bytes.
    pub(super) fn read_whole(&self, read: &Arc<AtomicU64>) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        let compressed = |end: &str| self.path.to_string_lossy().ends_with(end);
        let plain = self.format == Format::RemoteWrite && !compressed(".gz") && !compressed(".zst");
        let limit = match self.format {
            Format::RemoteWrite => remote_write::BODY_BYTES_MAX as u64,
            Format::OpenMetrics | Format::Influx | Format::Csv | Format::Whisper => WHOLE_BYTES_MAX,
        };
        let length = if plain {
            let file =
                Counted { file: File::open(&self.path)?.take(self.bytes), read: read.clone() };
            file.take(limit + 1).read_to_end(&mut out)?
        } else {
            self.open(read)?.take(limit + 1).read_to_end(&mut out)?
        };
        if length as u64 > limit {
            let problem = format!("larger than {limit} bytes, which is too much for one such file");
            return Err(io::Error::other(problem));
        }
        Ok(out)
    }
}

fn precision_word(precision: Precision) -> &'static str {
    match precision {
        Precision::Nanoseconds => "ns",
        Precision::Microseconds => "us",
        Precision::Milliseconds => "ms",
        Precision::Seconds => "s",
        Precision::Minutes => "m",
        Precision::Hours => "h",
    }
}

struct Counted {
    file: io::Take<File>,
    read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::UnixMillis;

    fn options() -> Options {
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
    fn names_tell_formats_and_paths_tell_metrics() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a/b.wsp", "a/c/d.wsp", "e.lp.gz", "f.TSV", "g.txt", "h.unknown"] {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        let found = find(&[dir.path().to_owned()], &options()).unwrap();
        let found: Vec<_> = found.iter().map(|own| (own.format, own.metric.as_str())).collect();
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

    #[test]
    fn a_sender_is_what_is_read_and_how() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.csv");
        fs::write(&path, "time,value\n1,2\n").unwrap();
        let sender = |options: &Options| {
            let inputs = find(std::slice::from_ref(&path), options).unwrap();
            inputs[0].identity(options).unwrap()
        };
        let selected = |selection| Options { selection, ..options() };
        let plain = sender(&options());
        assert_eq!(plain, "import:ccd64ba9b854f25d3b123ee980104ff9");
        let counter = selected(Selection { kind: Some(Kind::Counter), ..Selection::default() });
        let metric = selected(Selection { metric: Some("m".to_owned()), ..Selection::default() });
        let until = UnixMillis(i64::MIN)..UnixMillis(5);
        let cut = selected(Selection { times: until, ..Selection::default() });
        let columns = Columns { metric: Some("m".to_owned()), ..Columns::default() };
        let named = Options { columns, ..options() };
        let precise = Options { precision: Precision::Seconds, ..options() };
        for other in [&counter, &metric, &cut] {
            assert_ne!(sender(other), plain);
        }
        assert_ne!(sender(&named), plain);
        assert_eq!(sender(&precise), plain);
        fs::write(&path, "time,value\n1,3\n").unwrap();
        assert_ne!(sender(&options()), plain);
    }
}
