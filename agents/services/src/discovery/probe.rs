//! The recognition of a program by its first answer.
//!
//! A request of HTTP is sent to each port: Redis, `MongoDB` and `RabbitMQ` answer it with an error
//! of their own, and MySQL greets first. Where nothing answers, `PostgreSQL`, memcached and
//! `MongoDB` get requests of their protocols if the port or the program's name suggests them.
//! Requests change nothing, and contain no credentials.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use granary_agent_kit::Stopwatch;

use super::suggestion::Suggestion;

/// The time limit of a connection, and of its first answer.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(200);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);
/// The maximum length of an answer that is read.
const ANSWER_BYTES_MAX: usize = 16 << 10;
/// The paths at which nginx usually serves `stub_status`.
const STATUS_PATHS: [&str; 4] = ["/stub_status", "/nginx_status", "/basic_status", "/status"];
/// The request of PostgreSQL's protocol for TLS: length and code.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];
/// The number of MongoDB's messages, in their header.
const OP_MSG: [u8; 4] = [0xdd, 7, 0, 0];
/// The command `hostInfo` in MongoDB's protocol: a message without flags, and one document.
const HOST_INFO: &[u8] = b"\x37\0\0\0\x01\0\0\0\0\0\0\0\xdd\x07\0\0\0\0\0\0\0\
    \x22\0\0\0\x10hostInfo\0\x01\0\0\0\x02$db\0\x06\0\0\0admin\0\0";

/// A program that listens on a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// Redis or a compatible server.
    Redis {
        /// True when it only answers after a password.
        needs_password: bool,
    },
    /// nginx.
    Nginx {
        /// The path of `stub_status`, if it was found.
        status_path: Option<String>,
    },
    /// PostgreSQL.
    Postgres,
    /// MySQL or MariaDB.
    MySql,
    /// MongoDB.
    MongoDb {
        /// True when it requires a user.
        needs_password: bool,
    },
    /// memcached.
    Memcached,
    /// `RabbitMQ`, or another server of AMQP.
    RabbitMq,
    /// `HAProxy`, by its page of statistics.
    HaProxy,
    /// Any program that serves metrics at `/metrics`.
    Metrics,
}

/// Recognizes the program that listens at this address.
pub(super) fn recognize(address: SocketAddr, suggestion: Option<Suggestion>) -> Option<Program> {
    let answer = get(address, "/metrics");
    let first = classify(&answer)?;
    Some(match first {
        Answer::Program(Program::MongoDb { .. }) => recognize_mongodb(address)?,
        // Redis checks the number of arguments before the password.
        Answer::Program(Program::Redis { needs_password: false }) => {
            let is_open = exchange(address, b"PING\r\n").starts_with(b"+PONG");
            Program::Redis { needs_password: !is_open }
        }
        Answer::Program(program) => program,
        Answer::Http { is_nginx: true } => {
            let has_status = |path: &&&str| is_stub_status(&get(address, path));
            let status_path = STATUS_PATHS.iter().find(has_status).map(|path| (*path).to_owned());
            Program::Nginx { status_path }
        }
        Answer::Http { is_nginx: false } => {
            ["/stats;csv", "/haproxy?stats;csv"].iter().find(|path| {
                let answer = get(address, path);
                // The body can begin with the length of a chunk.
                let mut lines = body_of(&answer).split(|byte| *byte == b'\n');
                lines.any(|line| line.starts_with(b"# pxname,"))
            })?;
            Program::HaProxy
        }
        Answer::Silence => match suggestion? {
            Suggestion::Postgres => {
                is_postgres(&exchange(address, &SSL_REQUEST)).then_some(Program::Postgres)?
            }
            // memcached may end a connection that sends HTTP.
            Suggestion::Memcached => {
                let answer = exchange(address, b"version\r\n");
                answer.starts_with(b"VERSION ").then_some(Program::Memcached)?
            }
            Suggestion::MongoDb => recognize_mongodb(address)?,
            Suggestion::FirstAnswer => return None,
        },
    })
}

fn is_postgres(answer: &[u8]) -> bool {
    matches!(answer, [b'S' | b'N'])
}

/// Sends a command that needs a user if the server has users.
fn recognize_mongodb(address: SocketAddr) -> Option<Program> {
    let answer = exchange(address, HOST_INFO);
    // The operation of the answer's header.
    let is_message = answer.get(12..16) == Some(&OP_MSG);
    is_message.then(|| Program::MongoDb { needs_password: refuses_strangers(&answer) })
}

/// The meaning of the answer to the first request.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Program(Program),
    Http {
        is_nginx: bool,
    },
    /// The server ended the connection, or sent nothing.
    Silence,
}

/// Returns the meaning of an answer, or `None` for an unknown protocol.
fn classify(answer: &[u8]) -> Option<Answer> {
    let contains = |part: &[u8]| answer.windows(part.len()).any(|window| window == part);
    if answer.is_empty() {
        return Some(Answer::Silence);
    }
    let program = if contains(b"MongoDB over HTTP") {
        Program::MongoDb { needs_password: false }
    } else if answer.starts_with(b"HTTP/1.") {
        if answer.get(9..12) == Some(b"200") && is_exposition(body_of(answer)) {
            Program::Metrics
        } else {
            return Some(Answer::Http { is_nginx: contains(b"\r\nServer: nginx") });
        }
    } else if answer.starts_with(b"-NOAUTH") || answer.starts_with(b"-DENIED") {
        Program::Redis { needs_password: true }
    } else if answer.starts_with(b"-ERR") {
        Program::Redis { needs_password: false }
    } else if answer.starts_with(b"ERROR\r\n") || answer.starts_with(b"CLIENT_ERROR") {
        Program::Memcached
    } else if answer.starts_with(b"AMQP") {
        Program::RabbitMq
    } else if is_mysql_greeting(answer) {
        Program::MySql
    } else {
        return None;
    };
    Some(Answer::Program(program))
}

/// Returns true for the first packet of MySQL: its length, the number 0, and version 10 of the
/// protocol or an error, such as for too many connections.
fn is_mysql_greeting(answer: &[u8]) -> bool {
    let [low, middle, 0, 0, kind, ..] = *answer else { return false };
    let length = usize::from(low) + (usize::from(middle) << 8);
    matches!(kind, 10 | 255) && (length + 4 == answer.len() || answer.len() > length + 4)
}

/// Returns true when a text has the comments of Prometheus' exposition formats.
fn is_exposition(body: &[u8]) -> bool {
    let mut lines = body.split(|byte| *byte == b'\n');
    lines.any(|line| line.starts_with(b"# TYPE ") || line.starts_with(b"# HELP "))
}

fn is_stub_status(answer: &[u8]) -> bool {
    body_of(answer).starts_with(b"Active connections:")
}

fn refuses_strangers(answer: &[u8]) -> bool {
    let refusals: [&[u8]; 2] = [b"Unauthorized", b"requires authentication"];
    refusals.iter().any(|part| answer.windows(part.len()).any(|window| window == *part))
}

/// Returns the body of an HTTP response.
fn body_of(answer: &[u8]) -> &[u8] {
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n");
    end.and_then(|end| answer.get(end + 4..)).unwrap_or_default()
}

/// Sends a request without a header `Host`, which Redis would report as an attack.
fn get(address: SocketAddr, path: &str) -> Vec<u8> {
    exchange(address, format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes())
}

/// Sends bytes and returns the first bytes of the answer, or nothing after an error.
fn exchange(address: SocketAddr, request: &[u8]) -> Vec<u8> {
    let mut answer = Vec::new();
    let watch = Stopwatch::start();
    let Ok(mut stream) = TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) else {
        return answer;
    };
    if stream.set_write_timeout(Some(CONNECT_TIMEOUT)).is_err()
        || stream.write_all(request).is_err()
    {
        return answer;
    }
    let mut buffer = [0; 4096];
    while answer.len() < ANSWER_BYTES_MAX {
        // After the first bytes, the rest arrives at once, or belongs to another message.
        let limit = if answer.is_empty() { ANSWER_TIMEOUT } else { CONNECT_TIMEOUT };
        let left = watch.left_of(ANSWER_TIMEOUT).min(limit);
        if left.is_zero() || stream.set_read_timeout(Some(left)).is_err() {
            break;
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(length) => answer.extend(buffer.iter().take(length)),
        }
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_recognized_by_their_first_answer() {
        let program = |answer: &[u8]| match classify(answer) {
            Some(Answer::Program(program)) => Some(program),
            _ => None,
        };
        let redis = |needs_password| Some(Program::Redis { needs_password });
        assert_eq!(program(b"-ERR wrong number of arguments for 'get' command\r\n"), redis(false));
        assert_eq!(program(b"-NOAUTH Authentication required.\r\n"), redis(true));
        assert_eq!(program(b"ERROR\r\n"), Some(Program::Memcached));
        assert_eq!(program(b"AMQP\0\0\x09\x01"), Some(Program::RabbitMq));
        assert_eq!(program(b"\x05\0\0\0\x0a8.0\0"), Some(Program::MySql));
        assert_eq!(program(b"\x05\0\0\0\x0b8.0\0"), None);
        let mongo = b"HTTP/1.0 200 OK\r\nConnection: close\r\n\r\nIt looks like you are trying to \
                      access MongoDB over HTTP on the native driver port.\r\n";
        assert_eq!(program(mongo), Some(Program::MongoDb { needs_password: false }));
        let metrics = b"HTTP/1.0 200 OK\r\nA: b\r\n\r\n# HELP up x\nup 1\n";
        assert_eq!(program(metrics), Some(Program::Metrics));
        let page = b"HTTP/1.1 200 OK\r\nServer: nginx/1.22\r\n\r\n<html># TYPE";
        assert_eq!(classify(page), Some(Answer::Http { is_nginx: true }));
        assert_eq!(classify(b"HTTP/1.1 404 Not Found\r\n\r\n# TYPE a gauge"), {
            Some(Answer::Http { is_nginx: false })
        });
        assert_eq!(classify(b""), Some(Answer::Silence));
        assert_eq!(classify(b"SSH-2.0-OpenSSH_9.2\r\n"), None);
    }

    /// Regression: a silent program got requests of three protocols.
    #[test]
    fn a_silent_program_only_gets_the_request_that_its_name_or_port_suggests() {
        let requests = |suggestion| {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let server = std::thread::spawn(move || {
                let mut received = Vec::new();
                for mut stream in listener.incoming().map_while(Result::ok) {
                    let mut request = [0; 64];
                    let length = stream.read(&mut request).unwrap();
                    if length == 0 {
                        return received;
                    }
                    received.push(request[..length].to_vec());
                }
                received
            });
            assert_eq!(recognize(address, suggestion), None);
            // A connection without a request ends the server.
            drop(TcpStream::connect(address).unwrap());
            server.join().unwrap()
        };
        let first: &[u8] = b"GET /metrics HTTP/1.0\r\n\r\n";
        assert_eq!(requests(None), [first]);
        assert_eq!(requests(Some(Suggestion::FirstAnswer)), [first]);
        assert_eq!(requests(Some(Suggestion::Postgres)), [first, &SSL_REQUEST]);
        assert_eq!(requests(Some(Suggestion::MongoDb)), [first, HOST_INFO]);
    }

    #[test]
    fn the_command_of_mongodb_has_the_lengths_of_its_parts() {
        let length = |at: usize| u32::from_le_bytes(HOST_INFO[at..at + 4].try_into().unwrap());
        assert_eq!(length(0) as usize, HOST_INFO.len());
        assert_eq!(length(21) as usize, HOST_INFO.len() - 21);
    }
}
