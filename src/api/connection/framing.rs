//! The extent of HTTP/1.1 requests: the number of received bytes that belong to the current
//! request.
//!
//! Must never know: sockets. Unreadable input ends the request here; the HTTP server reads the
//! same bytes, answers with an error, and closes the connection.

/// The maximum size of a head: the HTTP server answers 431 to larger heads.
pub(super) const HEAD_BYTES_MAX: usize = 128 << 10;
/// The maximum number of headers, equal to the maximum of the HTTP server.
const HEADERS_MAX: usize = 96;
/// The maximum length of a line in chunked encoding: a size with extensions, or a trailer field.
const CHUNK_LINE_BYTES_MAX: usize = 4096;

/// The position in a request. See the module.
#[derive(Debug, Default)]
pub(super) struct Framing {
    phase: Phase,
}

#[derive(Debug, Default)]
enum Phase {
    /// The head, with the number of its bytes that were searched.
    Head(usize),
    /// A body, with the number of bytes that are missing.
    Body(u64),
    /// A chunked body.
    Chunked(Chunk),
    /// The end of the request.
    #[default]
    Complete,
}

#[derive(Debug)]
enum Chunk {
    /// The line with the chunk's size.
    Size(Vec<u8>),
    /// The data of a chunk and its end of line, with the number of missing bytes.
    Data(u64),
    /// The lines after the last chunk, with the length of the current line without its end.
    Trailers { line: usize },
}

impl Framing {
    /// Starts a request.
    pub(super) fn start() -> Self {
        Self { phase: Phase::Head(0) }
    }

    /// Returns true after the whole request was passed on.
    pub(super) fn is_complete(&self) -> bool {
        matches!(self.phase, Phase::Complete)
    }

    /// Returns the number of missing bytes of a body with a known length.
    pub(super) fn missing_body(&self) -> Option<u64> {
        match self.phase {
            Phase::Body(left) => Some(left),
            Phase::Head(_) | Phase::Chunked(_) | Phase::Complete => None,
        }
    }

    /// Returns the number of bytes that may be passed on. `bytes` follow the bytes that were passed
    /// on before; the caller repeats the remaining bytes in the next call. 0 means that more bytes
    /// are needed, or that the request is complete.
    pub(super) fn pass(&mut self, bytes: &[u8]) -> usize {
        match &mut self.phase {
            Phase::Head(seen) => match end_of_head(bytes, *seen) {
                None if bytes.len() < HEAD_BYTES_MAX => {
                    *seen = bytes.len();
                    0
                }
                None => {
                    self.phase = Phase::Complete;
                    bytes.len()
                }
                Some(end) => {
                    self.phase = phase_after_head(&bytes[..end]);
                    end
                }
            },
            Phase::Body(left) => {
                let passed = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                *left -= passed as u64;
                if *left == 0 {
                    self.phase = Phase::Complete;
                }
                passed
            }
            Phase::Chunked(chunk) => {
                let (passed, continues) = chunk.pass(bytes);
                if !continues {
                    self.phase = Phase::Complete;
                }
                passed
            }
            Phase::Complete => 0,
        }
    }
}

/// Returns the end of the head, including its empty line. `seen` bytes were searched before.
fn end_of_head(bytes: &[u8], seen: usize) -> Option<usize> {
    // Empty lines before a request are skipped.
    let begin = bytes.iter().position(|byte| !matches!(byte, b'\r' | b'\n'))?;
    let from = seen.saturating_sub(2).max(begin);
    let ends = (from..bytes.len()).filter(|at| bytes[*at] == b'\n');
    ends.into_iter().find_map(|at| match &bytes[at + 1..] {
        [b'\n', ..] => Some(at + 2),
        [b'\r', b'\n', ..] => Some(at + 3),
        _ => None,
    })
}

/// Returns the phase after a head.
fn phase_after_head(head: &[u8]) -> Phase {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    if !request.parse(head).is_ok_and(|parsed| parsed.is_complete()) {
        return Phase::Complete;
    }
    let mut body = Phase::Complete;
    for header in request.headers {
        if header.name.eq_ignore_ascii_case("transfer-encoding") {
            return Phase::Chunked(Chunk::Size(Vec::new()));
        }
        if header.name.eq_ignore_ascii_case("content-length") {
            let length = std::str::from_utf8(header.value).ok();
            body = match length.and_then(|text| text.trim().parse().ok()) {
                None | Some(0) => Phase::Complete,
                Some(length) => Phase::Body(length),
            };
        }
    }
    body
}

impl Chunk {
    /// Returns the number of bytes that belong to the body, and true when the body continues after
    /// them.
    fn pass(&mut self, bytes: &[u8]) -> (usize, bool) {
        let mut at = 0;
        while at < bytes.len() {
            match self {
                Self::Data(left) => {
                    let passed = usize::try_from(*left).unwrap_or(usize::MAX);
                    let passed = passed.min(bytes.len() - at);
                    at += passed;
                    *left -= passed as u64;
                    if *left == 0 {
                        *self = Self::Size(Vec::new());
                    }
                }
                Self::Size(line) => {
                    line.push(bytes[at]);
                    at += 1;
                    if bytes[at - 1] == b'\n' {
                        match httparse::parse_chunk_size(line) {
                            Ok(httparse::Status::Complete((_, 0))) => {
                                *self = Self::Trailers { line: 0 };
                            }
                            Ok(httparse::Status::Complete((_, size))) => {
                                *self = Self::Data(size.saturating_add(2));
                            }
                            Ok(httparse::Status::Partial) | Err(_) => return (at, false),
                        }
                    } else if line.len() > CHUNK_LINE_BYTES_MAX {
                        return (at, false);
                    }
                }
                Self::Trailers { line } => {
                    at += 1;
                    match bytes[at - 1] {
                        b'\n' if *line == 0 => return (at, false),
                        b'\n' => *line = 0,
                        b'\r' => {}
                        _ if *line > CHUNK_LINE_BYTES_MAX => return (at, false),
                        _ => *line += 1,
                    }
                }
            }
        }
        (at, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Splits bytes, which arrive in pieces of `at_a_time`, into requests.
    fn requests(bytes: &[u8], at_a_time: usize) -> Vec<String> {
        let (mut out, mut request) = (Vec::new(), Vec::new());
        let (mut framing, mut held) = (Framing::start(), Vec::new());
        for piece in bytes.chunks(at_a_time) {
            held.extend_from_slice(piece);
            loop {
                let passed = framing.pass(&held);
                request.extend(held.drain(..passed));
                if framing.is_complete() {
                    out.push(String::from_utf8(std::mem::take(&mut request)).unwrap());
                    framing = Framing::start();
                } else if passed == 0 {
                    break;
                }
            }
        }
        assert!(held.is_empty() && request.is_empty(), "left: {held:?} {request:?}");
        out
    }

    #[test]
    fn requests_are_split_correctly_in_pieces_of_any_size() {
        let all = [
            "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n",
            "\r\n\r\nGET / HTTP/1.1\nHost: a\n\n",
            "POST /w HTTP/1.1\r\nContent-Length: 5\r\n\r\n\r\n\r\nx",
            "POST /w HTTP/1.1\r\ncontent-length: 0\r\n\r\n",
            "POST /w HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nGET /\r\n0\r\n\r\n",
            "POST /w HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\nC: d\r\n\r\n",
            "GET /z HTTP/1.0\r\n\r\n",
        ];
        let bytes = all.concat();
        for at_a_time in 1..bytes.len() {
            assert_eq!(requests(bytes.as_bytes(), at_a_time), all, "{at_a_time} at a time");
        }
    }

    #[test]
    fn unreadable_input_ends_the_request() {
        for text in ["\0\x01 nonsense\r\n\r\n", "GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n"] {
            let mut framing = Framing::start();
            assert_eq!(framing.pass(text.as_bytes()), text.len());
            assert!(framing.is_complete(), "{text}");
        }
        let mut endless = Framing::start();
        assert_eq!(endless.pass(&vec![b'a'; HEAD_BYTES_MAX]), HEAD_BYTES_MAX);
        assert!(endless.is_complete());
        let mut chunked = Framing::start();
        let head = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(chunked.pass(head.as_bytes()), head.len());
        assert_eq!(chunked.pass(b"nonsense\r\n"), 10);
        assert!(chunked.is_complete());
    }
}
