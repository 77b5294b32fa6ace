//! The names of containers, from the API that Docker and Podman serve on a Unix socket.
//!
//! containerd and CRI-O have no HTTP API: their containers keep the digits of their groups.

use std::{
    collections::HashMap,
    io::{self, Read, Write},
    os::unix::net::UnixStream,
    path::Path,
    time::Duration,
};

use granary_agent_kit::Stopwatch;
use rustix::{
    io::Errno,
    net::{
        AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with,
        sockopt::{Timeout, set_socket_timeout},
    },
};
use serde::Deserialize;

use super::detection::{GROUPS_MAX, ID_DIGITS};

/// The sockets of Docker and Podman, below the folder `run`.
const SOCKETS: [&str; 2] = ["docker.sock", "podman/podman.sock"];
/// The running containers. Without keep-alive and without chunks, the response ends with the
/// connection.
const REQUEST: &[u8] = b"GET /containers/json HTTP/1.0\r\nHost: localhost\r\n\r\n";
/// The time limit of all responses together, less than that of a round.
const TIMEOUT: Duration = Duration::from_millis(700);
/// The maximum size of a response; a container takes about 2 kB.
const ANSWER_BYTES_MAX: usize = 4 << 20;
/// The maximum length of a name and of an image.
const TEXT_CHARS_MAX: usize = 200;

/// The name and the image of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ContainerName {
    pub(super) name: String,
    pub(super) image: String,
}

/// The names of running containers, by the first digits of their identifiers.
pub(super) type ContainerNames = HashMap<String, ContainerName>;

/// An element of the response.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Container {
    id: String,
    #[serde(default)]
    names: Vec<String>,
    #[serde(default)]
    image: String,
}

/// Requests the names of all sockets that exist in `run`. `report` gets a socket that fails, and
/// the cause.
pub(super) fn read_names(run: &Path, mut report: impl FnMut(&Path, String)) -> ContainerNames {
    let (mut names, watch) = (ContainerNames::new(), Stopwatch::start());
    for socket in SOCKETS.map(|socket| run.join(socket)).iter().filter(|socket| socket.exists()) {
        match request(socket, &watch).and_then(|answer| parse_answer(&answer)) {
            Ok(found) => names.extend(found),
            Err(cause) => report(socket, explain(&cause)),
        }
    }
    names
}

fn explain(cause: &io::Error) -> String {
    if cause.kind() == io::ErrorKind::PermissionDenied {
        return "no permission: containers have no names; members of the socket's group may read \
                them, and control all containers"
            .to_owned();
    }
    cause.to_string()
}

/// Returns the time that is left for all responses.
///
/// # Errors
/// No time is left.
fn time_left(watch: &Stopwatch) -> io::Result<Duration> {
    let left = watch.left_of(TIMEOUT);
    if left.is_zero() { Err(timed_out()) } else { Ok(left) }
}

fn timed_out() -> io::Error {
    let cause = format!("no complete answer within {TIMEOUT:?}");
    io::Error::new(io::ErrorKind::TimedOut, cause)
}

/// Connects within the time that is left; writes have the same limit. `UnixStream::connect` would
/// wait without a limit for a daemon that accepts no connections and whose queue is full.
fn connect(socket: &Path, watch: &Stopwatch) -> io::Result<UnixStream> {
    let client = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // On Linux, this limit is also the limit of connect.
    set_socket_timeout(&client, Timeout::Send, Some(time_left(watch)?))?;
    match rustix::net::connect(&client, &SocketAddrUnix::new(socket)?) {
        Err(Errno::AGAIN) => Err(timed_out()),
        connected => connected.map(|()| client.into()).map_err(io::Error::from),
    }
}

/// Returns the whole response, within the limits of time and size.
fn request(socket: &Path, watch: &Stopwatch) -> io::Result<Vec<u8>> {
    let mut stream = connect(socket, watch)?;
    stream.write_all(REQUEST)?;
    let (mut answer, mut part) = (Vec::new(), [0; 8192]);
    loop {
        stream.set_read_timeout(Some(time_left(watch)?))?;
        let length = match stream.read(&mut part) {
            // The read timed out; the next turn returns the error.
            Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => continue,
            read => read?,
        };
        if length == 0 {
            return Ok(answer);
        }
        if answer.len() + length > ANSWER_BYTES_MAX {
            return Err(io::Error::other(format!("more than {ANSWER_BYTES_MAX} bytes")));
        }
        answer.extend_from_slice(part.get(..length).unwrap_or_default());
    }
}

fn parse_answer(answer: &[u8]) -> io::Result<ContainerNames> {
    let invalid = |cause: &str| io::Error::new(io::ErrorKind::InvalidData, cause.to_owned());
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n");
    let (head, body) = end.map(|end| answer.split_at(end + 4)).ok_or(invalid("no HTTP answer"))?;
    let head = String::from_utf8_lossy(head);
    let status = head.split_ascii_whitespace().nth(1).unwrap_or_default();
    if !head.starts_with("HTTP/1.") || status != "200" {
        let shown: String = status.chars().take(20).collect();
        return Err(invalid(&format!("status {shown:?} instead of 200")));
    }
    let containers: Vec<Container> =
        serde_json::from_slice(body).map_err(|cause| invalid(&cause.to_string()))?;
    Ok(containers.iter().take(GROUPS_MAX).filter_map(name_of).collect())
}

/// Returns the digits of the container's group, and its name.
fn name_of(container: &Container) -> Option<(String, ContainerName)> {
    let id = container.id.get(..ID_DIGITS)?.to_owned();
    // Other names are links, such as `/web/db`.
    let own = |name: &&String| name.matches('/').count() <= 1;
    let name = container.names.iter().find(own)?.trim_start_matches('/');
    let shorten = |text: &str| text.chars().take(TEXT_CHARS_MAX).collect::<String>();
    let name = ContainerName { name: shorten(name), image: shorten(&container.image) };
    (!name.name.is_empty() && !name.image.is_empty()).then_some((id, name))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::net::UnixListener, thread};

    use proptest::prelude::*;

    use super::*;

    /// Two elements in the form that the Docker Engine API v1.47 documents, shortened.
    const CONTAINERS: &str = r#"[
        {"Id": "8dfafdbc3a40aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
         "Names": ["/db/alias", "/boring_feynman"], "Image": "ubuntu:latest",
         "Command": "echo 1", "Created": 1367854155, "State": "running", "Labels": {"a": "b"},
         "Ports": [{"PrivatePort": 2222, "PublicPort": 3333, "Type": "tcp"}]},
        {"Id": "9cd87474be90bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
         "Names": ["/coolName"], "Image": "redis"},
        {"Id": "3176a2479c92cccccccccccccccccccccccccccccccccccccccccccccccccccc",
         "Names": [], "Image": "unnamed"}]"#;

    /// Answers one request on the socket of Docker in a new folder `run`; returns names and faults.
    fn read_from(answer: &[u8]) -> (ContainerNames, Vec<String>) {
        let run = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(run.path().join("docker.sock")).unwrap();
        let answer = answer.to_vec();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = vec![0; REQUEST.len()];
            stream.read_exact(&mut request).unwrap();
            // The client may close the connection before the whole answer is sent.
            let _sent = stream.write_all(&answer);
            request
        });
        let mut faults = Vec::new();
        let names = read_names(run.path(), |_, cause| faults.push(cause));
        assert_eq!(server.join().unwrap(), REQUEST);
        (names, faults)
    }

    #[test]
    fn names_and_images_are_read_from_a_socket() {
        let head = "HTTP/1.0 200 OK\r\nApi-Version: 1.47\r\nContent-Type: application/json\r\n\r\n";
        let (names, faults) = read_from(format!("{head}{CONTAINERS}").as_bytes());
        let name = |name: &str, image: &str| ContainerName {
            name: name.to_owned(),
            image: image.to_owned(),
        };
        let expected = [
            ("8dfafdbc3a40".to_owned(), name("boring_feynman", "ubuntu:latest")),
            ("9cd87474be90".to_owned(), name("coolName", "redis")),
        ];
        assert_eq!((names, faults), (ContainerNames::from(expected), Vec::new()));
    }

    #[test]
    fn an_answer_that_is_refused_or_invalid_is_reported_without_names() {
        for (answer, part) in [
            ("HTTP/1.0 500 Internal Server Error\r\n\r\n{\"message\": \"x\"}", "\"500\""),
            ("HTTP/1.0 200 OK\r\n\r\n{\"message\": \"no array\"}", "expected a sequence"),
            ("HTTP/1.0 200 OK\r\n\r\n[{\"Names\": []}]", "missing field `Id`"),
            ("SSH-2.0-OpenSSH\r\n\r\n", "instead of 200"),
            ("", "no HTTP answer"),
        ] {
            let (names, faults) = read_from(answer.as_bytes());
            assert!(names.is_empty() && faults.len() == 1, "{answer}: {names:?}");
            assert!(faults[0].contains(part), "{part:?} is not in {faults:?}");
        }
        let (names, faults) = read_from(&vec![b' '; ANSWER_BYTES_MAX + 1]);
        assert!(names.is_empty() && faults[0].contains("more than"), "{faults:?}");
    }

    #[test]
    fn a_socket_that_does_not_answer_is_reported() {
        let run = tempfile::tempdir().unwrap();
        let socket = run.path().join("docker.sock");
        let mut faults = Vec::new();
        read_names(run.path(), |_, cause| faults.push(cause));
        assert_eq!(faults, Vec::<String>::new(), "there is no socket");
        let listener = UnixListener::bind(&socket).unwrap();
        read_names(run.path(), |_, cause| faults.push(cause));
        assert!(faults[0].contains("within"), "{faults:?}");
        drop(listener);
        fs::remove_file(&socket).unwrap();
        fs::write(&socket, "no socket").unwrap();
        read_names(run.path(), |_, cause| faults.push(cause));
        assert_eq!(faults.len(), 2);
        let denied = explain(&io::Error::from(io::ErrorKind::PermissionDenied));
        assert!(denied.contains("no permission"), "{denied}");
    }

    /// Regression: connecting to a daemon that hangs, with a full queue of connections, had no
    /// deadline, so that all control groups and units were missing.
    #[test]
    fn a_daemon_that_accepts_no_connections_is_reported() {
        let run = tempfile::tempdir().unwrap();
        let socket = run.path().join("docker.sock");
        let server =
            socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None);
        let server = server.unwrap();
        rustix::net::bind(&server, &SocketAddrUnix::new(&socket).unwrap()).unwrap();
        rustix::net::listen(&server, 0).unwrap();
        let mut waiting = Vec::new();
        let fault = loop {
            assert!(waiting.len() < 100, "the queue is never full");
            match connect(&socket, &Stopwatch::start()) {
                Ok(stream) => waiting.push(stream),
                Err(fault) => break fault,
            }
        };
        assert_eq!(fault.kind(), io::ErrorKind::TimedOut);
        let mut faults = Vec::new();
        let names = read_names(run.path(), |_, cause| faults.push(cause));
        assert!(names.is_empty() && faults.len() == 1, "{faults:?}");
        assert!(faults[0].contains("within"), "{faults:?}");
    }

    proptest! {
        #[test]
        fn any_answer_is_parsed_or_rejected(
            answer in proptest::collection::vec(any::<u8>(), 0..200)
        ) {
            drop(parse_answer(&answer));
            drop(parse_answer(&[b"HTTP/1.1 200 OK\r\n\r\n", &answer[..]].concat()));
        }
    }
}
