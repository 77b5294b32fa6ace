//! A small HTTP server on a real socket for tests, whose answers follow a script.
#![allow(clippy::unwrap_used, reason = "helpers of tests are not covered by allow-unwrap-in-tests")]

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    thread::JoinHandle,
};

use granary_protocol::{
    Batch, PACKED_MEDIA_TYPE, Ping, decode_batch, decode_pings, split_batches, unpack,
};

/// The batches of a request: number, defined refs and number of samples.
pub(crate) type ReceivedBatches = Vec<(u64, Vec<u32>, usize)>;

/// A received request, with the pings before it.
pub(crate) struct Request {
    pub(crate) pings: Vec<Ping>,
    pub(crate) batches: ReceivedBatches,
    pub(crate) epochs: Vec<i64>,
    pub(crate) times: Vec<i64>,
    pub(crate) head: String,
}

/// Serves the responses in order, one per connection, then ends. Pings are answered in addition.
pub(crate) fn serve(
    answers: Vec<(u16, impl AsRef<str> + Send + 'static, String)>,
) -> (String, JoinHandle<Vec<Request>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let thread = std::thread::spawn(move || {
        answers
            .into_iter()
            .map(|(status, headers, response)| {
                let mut pings = Vec::new();
                loop {
                    let (stream, _) = listener.accept().unwrap();
                    let (head, body) = read_request(&stream);
                    if head.starts_with("POST /api/v1/ping ") {
                        pings.extend(decode_pings(&body).unwrap().into_iter().map(Result::unwrap));
                        send_response(stream, 200, "", r#"{"accepted":1,"refused":[]}"#);
                        continue;
                    }
                    send_response(stream, status, headers.as_ref(), &response);
                    return decode_request(pings, head, &body);
                }
            })
            .collect()
    });
    (url, thread)
}

/// Sends a response and closes the connection.
pub(crate) fn send_response(mut stream: TcpStream, status: u16, headers: &str, body: &str) {
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status} X\r\nContent-Length: {length}\r\nConnection: close\r\n\
         {headers}\r\n{body}"
    )
    .unwrap();
}

/// Reads the head and the decompressed body.
pub(crate) fn read_request(stream: &TcpStream) -> (String, Vec<u8>) {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).unwrap() > 0, "request ends in its head: {head}");
    }
    let lower = head.to_ascii_lowercase();
    let field = |name: &str| {
        lower.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned())
    };
    let mut body = vec![0; field("content-length:").unwrap().parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    if field("content-encoding:").as_deref() == Some("zstd") {
        body = zstd::bulk::decompress(&body, 16 << 20).unwrap();
    }
    (head, body)
}

/// Decodes the batches of a body by its media type.
pub(crate) fn batches_of(head: &str, body: &[u8]) -> Vec<Batch> {
    if head.contains(PACKED_MEDIA_TYPE) {
        return unpack(body).unwrap();
    }
    let parts = split_batches(body).unwrap().into_iter();
    parts.map(|bytes| Batch::from(&decode_batch(bytes).unwrap())).collect()
}

fn decode_request(pings: Vec<Ping>, head: String, body: &[u8]) -> Request {
    let batches = batches_of(&head, body);
    let epochs = batches.iter().map(|batch| batch.epoch).collect();
    let times = batches.iter().flat_map(|batch| batch.times.clone()).collect();
    let refs = |batch: &Batch| batch.series.iter().map(|s| s.reference).collect();
    let batches =
        batches.iter().map(|batch| (batch.seq, refs(batch), batch.values.len())).collect();
    Request { pings, batches, epochs, times, head }
}
