//! Where one HTTP/1.1 request ends: how many of the bytes that came belong to the one under way.
//!
//! Must never know: sockets. What it cannot make sense of ends the request for it; the HTTP
//! server, which reads the same bytes, answers such a request and closes the connection.

/// Bytes of a head, at most: what the HTTP server takes before it answers 431.
pub(super) const HEAD_BYTES_MAX: usize = 128 << 10;
/// Headers of a request, at most, as the HTTP server has it.
const HEADERS_MAX: usize = 96;
/// Bytes of a line in chunked encoding, at most: a size with extensions, or a trailer field.
const CHUNK_LINE_BYTES_MAX: usize = 4096;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Framing {
    phase: Phase,
}

#[derive(Debug, Default)]
enum Phase {
    /// In the head; so many bytes of it were looked at.
    Head(usize),
    /// In a body of which so many bytes are to come; `Head(0)` would be the next request.
    Body(u64),
    /// In a chunked body.
    Chunked(Chunk),
    /// The request is whole.
    #[default]
    Whole,
}

#[derive(Debug)]
enum Chunk {
    /// In the line that says the chunk's size.
    Size(Vec<u8>),
    /// In a chunk with its end of line: bytes to come.
    Data(u64),
    /// In the lines behind the last chunk: bytes of the present one, ends of line not counted.
    Trailers { line: usize },
}

impl Framing {
    /// Begins a request.
    pub(super) fn begin() -> Self {
        Self { phase: Phase::Head(0) }
    }

    /// Whether all of the request went on.
    pub(super) fn is_whole(&self) -> bool {
        matches!(self.phase, Phase::Whole)
    }

    /// Bytes that are known to belong to the body and did not come yet.
    pub(super) fn body_left(&self) -> Option<u64> {
        match self.phase {
            Phase::Body(left) => Some(left),
            Phase::Head(_) | Phase::Chunked(_) | Phase::Whole => None,
        }
    }

    /// How many of the bytes, which follow those that went on, may go on now. With 0 more must
    /// come first, or the request is whole. Bytes that did not go on are to be shown again.
    pub(super) fn pass(&mut self, bytes: &[u8]) -> usize {
        match &mut self.phase {
            Phase::Head(seen) => match end_of_head(bytes, *seen) {
                None if bytes.len() < HEAD_BYTES_MAX => {
                    *seen = bytes.len();
                    0
                }
                None => {
                    self.phase = Phase::Whole;
                    bytes.len()
                }
                Some(end) => {
                    self.phase = body_of(&bytes[..end]);
                    end
                }
            },
            Phase::Body(left) => {
                let passed = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                *left -= passed as u64;
                if *left == 0 {
                    self.phase = Phase::Whole;
                }
                passed
            }
            Phase::Chunked(chunk) => {
                let (passed, goes_on) = chunk.pass(bytes);
                if !goes_on {
                    self.phase = Phase::Whole;
                }
                passed
            }
            Phase::Whole => 0,
        }
    }
}

/// Where the empty line ends that ends a head; what is before `seen` was looked at.
fn end_of_head(bytes: &[u8], seen: usize) -> Option<usize> {
    // Empty lines before a request are passed over.
    let begin = bytes.iter().position(|byte| !matches!(byte, b'\r' | b'\n'))?;
    let from = seen.saturating_sub(2).max(begin);
    let ends = (from..bytes.len()).filter(|at| bytes[*at] == b'\n');
    ends.into_iter().find_map(|at| match &bytes[at + 1..] {
        [b'\n', ..] => Some(at + 2),
        [b'\r', b'\n', ..] => Some(at + 3),
        _ => None,
    })
}

/// What follows a head.
fn body_of(head: &[u8]) -> Phase {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    if !request.parse(head).is_ok_and(|parsed| parsed.is_complete()) {
        return Phase::Whole;
    }
    let mut body = Phase::Whole;
    for header in request.headers {
        if header.name.eq_ignore_ascii_case("transfer-encoding") {
            return Phase::Chunked(Chunk::Size(Vec::new()));
        }
        if header.name.eq_ignore_ascii_case("content-length") {
            let length = std::str::from_utf8(header.value).ok();
            body = match length.and_then(|text| text.trim().parse().ok()) {
                None | Some(0) => Phase::Whole,
                Some(length) => Phase::Body(length),
            };
        }
    }
    body
}

impl Chunk {
    /// How many bytes belong to the body, and whether it goes on behind them.
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

    /// The bytes of each request, when they come so many at a time.
    fn requests(bytes: &[u8], at_a_time: usize) -> Vec<String> {
        let (mut out, mut own) = (Vec::new(), Vec::new());
        let (mut framing, mut held) = (Framing::begin(), Vec::new());
        for piece in bytes.chunks(at_a_time) {
            held.extend_from_slice(piece);
            loop {
                let passed = framing.pass(&held);
                own.extend(held.drain(..passed));
                if framing.is_whole() {
                    out.push(String::from_utf8(std::mem::take(&mut own)).unwrap());
                    framing = Framing::begin();
                } else if passed == 0 {
                    break;
                }
            }
        }
        assert!(held.is_empty() && own.is_empty(), "left: {held:?} {own:?}");
        out
    }

    #[test]
    fn each_request_ends_where_it_ends_however_its_bytes_come() {
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
    fn what_cannot_be_read_ends_the_request() {
        for text in ["\0\x01 nonsense\r\n\r\n", "GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n"] {
            let mut framing = Framing::begin();
            assert_eq!(framing.pass(text.as_bytes()), text.len());
            assert!(framing.is_whole(), "{text}");
        }
        let mut endless = Framing::begin();
        assert_eq!(endless.pass(&vec![b'a'; HEAD_BYTES_MAX]), HEAD_BYTES_MAX);
        assert!(endless.is_whole());
        let mut chunked = Framing::begin();
        let head = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(chunked.pass(head.as_bytes()), head.len());
        assert_eq!(chunked.pass(b"nonsense\r\n"), 10);
        assert!(chunked.is_whole());
    }
}
