//! The identity of a file: the first part of its sender's name.

use std::{
    fs::File,
    io::{self, Read},
};

use xxhash_rust::xxh3::Xxh3;

use super::{
    Format,
    files::{BUFFER_BYTES, Input, Options},
    senders::SENDER_PREFIX,
};
use crate::{ingest::influx::Precision, model::Kind};

impl Input {
    /// Returns the start of the file's sender name: a hash of the content and of the options that
    /// change how it is read.
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
        Ok(format!("{SENDER_PREFIX}{:032x}", hash.digest128()))
    }

    /// Returns the options that change how the file is read. The words must never change, because
    /// other words result in another sender. The number in the first word must change whenever a
    /// decoder or the limits of batches produce other batches from the same file.
    fn reading(&self, options: &Options) -> String {
        let kind = options.selection.kind.map_or("by name", Kind::as_str);
        let mut words = vec!["granary import 1", kind];
        let columns = self.columns(options);
        let separator = columns.separator.to_string();
        match self.format {
            Format::OpenMetrics => words.push("openmetrics"),
            Format::Samples => words.push("samples"),
            // Before, histograms were refused.
            Format::RemoteWrite => words.push("remote-write with histograms"),
            Format::MongoDump => words.extend(["mongodump", &self.metric]),
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{
        super::files::{find, tests::options},
        *,
    };
    use crate::{
        import::{csv::Columns, selection::Selection},
        model::UnixMillis,
    };

    #[test]
    fn an_identity_depends_on_the_content_and_how_it_is_read() {
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
