//! A connection to a Redis server, with a deadline for each response.
//!
//! AUTH and INFO are the only commands, so no library is needed. Must never know: the content of
//! INFO.

use std::{
    fmt::Write as _,
    io::{self, BufRead, BufReader, Read, Write},
    net::{TcpStream, ToSocketAddrs},
    os::unix::net::UnixStream,
    time::Duration,
};

use granary_agent_kit::Stopwatch;

use crate::settings::{ServerAddress, Service};

const PORT: u16 = 6379;
/// The maximum size of a response: INFO has a few kilobytes, and a line for each database.
const ANSWER_BYTES_MAX: u64 = 1 << 20;
const LINE_BYTES_MAX: u64 = 1024;

/// A stream with a timeout.
trait Stream: Read + Write + Send {
    /// Sets the timeout of reads and writes.
    fn set_timeouts(&self, span: Duration) -> io::Result<()>;
}

impl Stream for TcpStream {
    fn set_timeouts(&self, span: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(span))?;
        self.set_write_timeout(Some(span))
    }
}

impl Stream for UnixStream {
    fn set_timeouts(&self, span: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(span))?;
        self.set_write_timeout(Some(span))
    }
}

/// A stream with one deadline for a request and its response, so that a server cannot extend it by
/// sending single bytes.
struct DeadlineStream {
    stream: Box<dyn Stream>,
    timeout: Duration,
    /// The time since the request.
    watch: Stopwatch,
}

impl DeadlineStream {
    /// Sets the stream's timeout to the rest of the deadline.
    fn apply_deadline(&self) -> io::Result<()> {
        let time_left = self.watch.left_of(self.timeout);
        if time_left.is_zero() {
            Err(self.timeout_error())
        } else {
            self.stream.set_timeouts(time_left)
        }
    }

    fn timeout_error(&self) -> io::Error {
        io::Error::new(io::ErrorKind::TimedOut, format!("took longer than {:?}", self.timeout))
    }

    /// Replaces the error of an expired stream timeout.
    fn with_timeout_error(&self, outcome: io::Result<usize>) -> io::Result<usize> {
        let is_timeout = |cause: &io::Error| cause.kind() == io::ErrorKind::WouldBlock;
        outcome.map_err(|cause| if is_timeout(&cause) { self.timeout_error() } else { cause })
    }
}

impl Read for DeadlineStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.apply_deadline()?;
        let outcome = self.stream.read(buffer);
        self.with_timeout_error(outcome)
    }
}

impl Write for DeadlineStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.apply_deadline()?;
        let outcome = self.stream.write(bytes);
        self.with_timeout_error(outcome)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// A persistent connection.
pub(super) struct Connection(BufReader<DeadlineStream>);

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

impl Connection {
    pub(super) fn open(service: &Service) -> Result<Self, String> {
        let fault = |cause: io::Error| cause.to_string();
        let timeout = service.timeout;
        let stream: Box<dyn Stream> = match service.server_address(PORT) {
            ServerAddress::Path(path) => Box::new(UnixStream::connect(path).map_err(fault)?),
            ServerAddress::Tcp(host, port) => {
                let mut last = Err(format!("{host} has no address"));
                for address in (host.as_str(), port).to_socket_addrs().map_err(fault)? {
                    last = TcpStream::connect_timeout(&address, timeout).map_err(fault);
                    if last.is_ok() {
                        break;
                    }
                }
                Box::new(last?)
            }
        };
        let watch = Stopwatch::start();
        let mut connection = Self(BufReader::new(DeadlineStream { stream, timeout, watch }));
        if let Some(password) = service.password()? {
            let user = service.user.as_deref();
            let words: Vec<&str> =
                ["AUTH"].into_iter().chain(user).chain([password.as_str()]).collect();
            // A server without this command quotes it in the error, with the password. Only the
            // first word of the error is safe.
            let first_word = |cause: String| cause.split(' ').next().unwrap_or_default().to_owned();
            connection
                .send_command(&words)
                .map_err(|cause| format!("AUTH is refused: {}", first_word(cause)))?;
        }
        Ok(connection)
    }

    pub(super) fn info(&mut self) -> Result<String, String> {
        let bytes = self.send_command(&["INFO"])?;
        String::from_utf8(bytes).map_err(|_| "INFO is not UTF-8".to_owned())
    }

    /// Sends a command and reads its response: a word, or a text of known length.
    fn send_command(&mut self, words: &[&str]) -> Result<Vec<u8>, String> {
        let mut command = format!("*{}\r\n", words.len());
        for word in words {
            // Writing to a String cannot fail.
            let _ok = write!(command, "${}\r\n{word}\r\n", word.len());
        }
        let fault = |cause: io::Error| cause.to_string();
        self.0.get_mut().watch = Stopwatch::start();
        self.0.get_mut().write_all(command.as_bytes()).map_err(fault)?;
        let mut line = String::new();
        (&mut self.0).take(LINE_BYTES_MAX).read_line(&mut line).map_err(fault)?;
        let line = line.trim_end();
        if let Some(refusal) = line.strip_prefix('-') {
            return Err(refusal.to_owned());
        }
        let Some(length) = line.strip_prefix('$') else {
            let is_word = line.starts_with('+');
            return if is_word { Ok(Vec::new()) } else { Err(format!("answered {line:?}")) };
        };
        let length = length.parse::<u64>().ok().filter(|length| *length <= ANSWER_BYTES_MAX);
        let length = length.ok_or_else(|| format!("answered {line:?}"))?;
        let mut body = vec![0; usize::try_from(length).unwrap_or(0) + 2];
        self.0.read_exact(&mut body).map_err(fault)?;
        body.truncate(body.len() - 2);
        Ok(body)
    }
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, thread};

    use super::*;
    use crate::settings::service_at;

    /// The server sends one byte within each timeout, without end.
    #[test]
    fn single_bytes_do_not_extend_the_deadline() {
        for first_bytes in ["", "$100000\r\n"] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap().to_string();
            let (stop, stop_receiver) = std::sync::mpsc::channel::<()>();
            let server = thread::spawn(move || {
                let mut stream = listener.accept().unwrap().0;
                stream.write_all(first_bytes.as_bytes()).unwrap();
                let pause = Duration::from_millis(20);
                while stop_receiver.recv_timeout(pause)
                    == Err(std::sync::mpsc::RecvTimeoutError::Timeout)
                {
                    if stream.write_all(b"x").is_err() {
                        return;
                    }
                }
            });
            let timeout = Duration::from_millis(200);
            let mut slow = Connection::open(&Service { timeout, ..service_at(address) }).unwrap();
            let watch = Stopwatch::start();
            assert_eq!(slow.info().unwrap_err(), "took longer than 200ms", "{first_bytes:?}");
            assert!(watch.elapsed() < Duration::from_secs(10));
            drop(stop);
            server.join().unwrap();
        }
    }
}
