//! A small HTTP server on a real socket for tests, answering from a script.
#![allow(clippy::unwrap_used, reason = "helpers of tests are not covered by allow-unwrap-in-tests")]

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    thread::JoinHandle,
};

use granary_protocol::{decode_batch, split_batches};

/// What a request held: number, refs defined and number of samples of each batch.
pub(crate) type Seen = Vec<(u64, Vec<u32>, usize)>;

/// A request as the server saw it.
pub(crate) struct Request {
    pub(crate) batches: Seen,
    pub(crate) epochs: Vec<i64>,
    pub(crate) head: String,
}

/// Answers one connection a response, in order, then ends.
pub(crate) fn serve(
    answers: Vec<(u16, &'static str, String)>,
) -> (String, JoinHandle<Vec<Request>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let thread = std::thread::spawn(move || {
        answers
            .into_iter()
            .map(|(status, headers, body)| {
                let (mut stream, _) = listener.accept().unwrap();
                let request = read_request(&stream);
                let length = body.len();
                write!(
                    stream,
                    "HTTP/1.1 {status} X\r\nContent-Length: {length}\r\nConnection: close\r\n\
                     {headers}\r\n{body}"
                )
                .unwrap();
                request
            })
            .collect()
    });
    (url, thread)
}

fn read_request(stream: &TcpStream) -> Request {
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
    let parts = split_batches(&body).unwrap();
    let views: Vec<_> = parts.into_iter().map(|bytes| decode_batch(bytes).unwrap()).collect();
    let batches = views
        .iter()
        .map(|view| (view.seq, view.series.iter().map(|s| s.reference).collect(), view.len()))
        .collect();
    let epochs = views.iter().map(|view| view.epoch).collect();
    Request { batches, epochs, head }
}
