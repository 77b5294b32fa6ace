//! Numbers, times and labels in Prometheus' JSON format.
//!
//! Must never know: the answers that contain them.

mod histogram;
mod numbers;
mod points;

pub(super) use histogram::push_histogram;
pub(super) use numbers::{push_exponent, push_float};
pub(super) use points::{Times, push_point, push_time};

/// Writes a string with quotes.
pub(super) fn push_text(text: &str, out: &mut Vec<u8>) {
    let is_special = |byte: u8| byte < b' ' || byte == b'"' || byte == b'\\';
    // A check of all bytes without an early exit is vectorized.
    if !text.bytes().fold(false, |any, byte| any | is_special(byte)) {
        out.reserve(text.len() + 2);
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        return out.push(b'"');
    }
    let written = serde_json::to_writer(out, text);
    debug_assert!(written.is_ok(), "writing to memory cannot fail");
}

/// Writes `,"name":["text",...]`, or nothing for an empty list.
pub(super) fn push_notes(name: &str, texts: &[String], out: &mut Vec<u8>) {
    if texts.is_empty() {
        return;
    }
    out.push(b',');
    push_text(name, out);
    out.extend_from_slice(b":[");
    for (index, text) in texts.iter().enumerate() {
        push_comma(index, out);
        push_text(text, out);
    }
    out.push(b']');
}

/// Writes an object of strings.
pub(super) fn push_labels<'a>(
    labels: impl IntoIterator<Item = (&'a str, &'a str)>,
    out: &mut Vec<u8>,
) {
    out.push(b'{');
    // `for_each` compiles to a single loop over the chained iterators of stored labels.
    labels.into_iter().enumerate().for_each(|(index, (name, value))| {
        push_comma(index, out);
        push_text(name, out);
        out.push(b':');
        push_text(value, out);
    });
    out.push(b'}');
}

/// Writes the separator before the element with this index.
pub(super) fn push_comma(index: usize, out: &mut Vec<u8>) {
    if index > 0 {
        out.push(b',');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn labels_and_notes_are_escaped() {
        let labels = [("__name__", "up"), ("job", "a\"b\\\n")];
        let text = written(|out| push_labels(labels, out));
        assert_eq!(text, r#"{"__name__":"up","job":"a\"b\\\n"}"#);
        let notes = ["one".to_owned(), "two".to_owned()];
        assert_eq!(written(|out| push_notes("infos", &notes, out)), r#","infos":["one","two"]"#);
        assert_eq!(written(|out| push_notes("infos", &[], out)), "");
    }
}
