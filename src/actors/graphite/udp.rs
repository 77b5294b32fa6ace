//! Graphite over UDP: a thread reads datagrams as they arrive, and the listener writes them in
//! batches.
//!
//! The kernel soon drops datagrams that wait in the socket while earlier datagrams become durable.
//! The thread therefore reads them into a buffer at once; everything that arrived meanwhile is
//! written as one request per sender. Datagrams that the buffer cannot hold, that the kernel
//! dropped, or that could not be written are counted.

use std::{
    collections::BTreeMap,
    fs, io,
    net::{IpAddr, UdpSocket},
    os::fd::AsFd,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use futures_util::future::join_all;
use parking_lot::Mutex;
use rustix::{fs::fstat, net::sockopt};
use tokio::sync::Notify;

use super::{CollectRows, RowProtocol, Sink};
use crate::telemetry::DatagramLoss;

/// The maximum size of a datagram.
const DATAGRAM_BYTES: usize = 64 << 10;
/// The receive buffer that is requested of the kernel; it may allow less.
const SOCKET_BYTES: usize = 8 << 20;
/// The interval at which an idle reader checks for a stop and for dropped datagrams.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);
/// The number of datagrams after which a busy reader checks for dropped datagrams.
const CHECK_DATAGRAMS: u32 = 4096;

/// A reader of one socket; it stops when it is dropped.
#[derive(Debug)]
pub(super) struct UdpReader {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    buffer: Mutex<Buffer>,
    has_datagrams: Notify,
    is_stopping: AtomicBool,
    bytes_max: usize,
}

/// Datagrams by sender, concatenated.
#[derive(Debug, Default)]
struct Buffer {
    by_sender: BTreeMap<IpAddr, WaitingDatagrams>,
    bytes: usize,
}

#[derive(Debug, Default)]
struct WaitingDatagrams {
    lines: BytesMut,
    datagrams: u64,
}

impl UdpReader {
    /// Starts the reader of a socket; at most `bytes_max` bytes wait to be written.
    pub(super) fn start(socket: UdpSocket, bytes_max: usize, sink: &Sink) -> io::Result<Self> {
        socket.set_read_timeout(Some(CHECK_INTERVAL))?;
        // A size above the system's limit needs a privilege.
        if sockopt::set_socket_recv_buffer_size_force(&socket, SOCKET_BYTES).is_err() {
            sockopt::set_socket_recv_buffer_size(&socket, SOCKET_BYTES)?;
        }
        let shared = Arc::new(Shared {
            buffer: Mutex::default(),
            has_datagrams: Notify::new(),
            is_stopping: AtomicBool::new(false),
            bytes_max,
        });
        let (shared_with_thread, sink) = (shared.clone(), sink.clone());
        let thread = thread::Builder::new()
            .name("graphite-udp".to_owned())
            .spawn(move || shared_with_thread.read(&socket, &sink))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Writes arriving datagrams, forever.
    pub(super) fn write(&self, sink: Sink) -> impl Future<Output = ()> + use<> {
        let shared = self.shared.clone();
        async move {
            loop {
                shared.has_datagrams.notified().await;
                let waiting = std::mem::take(&mut *shared.buffer.lock());
                join_all(
                    waiting.by_sender.into_iter().map(|(ip, datagrams)| sink.write(ip, datagrams)),
                )
                .await;
            }
        }
    }
}

impl Drop for UdpReader {
    fn drop(&mut self) {
        self.shared.is_stopping.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the reader of Graphite datagrams has panicked");
        }
    }
}

impl Shared {
    fn read(&self, socket: &UdpSocket, sink: &Sink) {
        let mut drops = KernelDrops::of(socket);
        let mut datagram = vec![0; DATAGRAM_BYTES];
        let mut since_check = 0;
        while !self.is_stopping.load(Ordering::Relaxed) {
            let received = socket.recv_from(&mut datagram);
            since_check += 1;
            if received.is_err() || since_check >= CHECK_DATAGRAMS {
                since_check = 0;
                sink.count_lost(DatagramLoss::Kernel, drops.take_new());
            }
            match received {
                Ok((length, peer)) => {
                    if !self.push(peer.ip(), &datagram[..length]) {
                        sink.count_lost(DatagramLoss::Buffer, 1);
                    }
                }
                Err(cause) if is_idle(&cause) => {}
                Err(cause) => {
                    tracing::debug!(%cause, "cannot receive a datagram");
                    thread::sleep(CHECK_INTERVAL);
                }
            }
        }
        let waiting = std::mem::take(&mut *self.buffer.lock());
        let lost = waiting.by_sender.values().map(|waiting| waiting.datagrams).sum();
        sink.count_lost(DatagramLoss::NotWritten, lost);
    }

    /// Appends a datagram; returns false when the buffer is full.
    fn push(&self, sender: IpAddr, datagram: &[u8]) -> bool {
        let mut buffer = self.buffer.lock();
        if buffer.bytes + datagram.len() > self.bytes_max {
            return false;
        }
        buffer.bytes += datagram.len() + 1;
        let waiting = buffer.by_sender.entry(sender).or_default();
        waiting.lines.extend_from_slice(datagram);
        waiting.lines.extend_from_slice(b"\n");
        waiting.datagrams += 1;
        drop(buffer);
        self.has_datagrams.notify_one();
        true
    }
}

impl Sink {
    async fn write(&self, sender: IpAddr, waiting: WaitingDatagrams) {
        let body: Bytes = waiting.lines.freeze();
        let sender = format!("graphite {sender}").into();
        let protocol = RowProtocol::GraphiteLines;
        let collect = CollectRows { body, protocol, sender, memory: None };
        if !matches!(self.collector.send(collect).await, Ok(Ok(_))) {
            self.count_lost(DatagramLoss::NotWritten, waiting.datagrams);
        }
    }

    fn count_lost(&self, loss: DatagramLoss, count: u64) {
        self.metrics.datagrams_dropped.with_label_values(&[loss.as_str()]).inc_by(count);
    }
}

fn is_idle(cause: &io::Error) -> bool {
    matches!(
        cause.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

/// The number of a socket's datagrams that the kernel dropped because they were not read in time.
struct KernelDrops {
    inode: Option<String>,
    known_drops: u64,
}

impl KernelDrops {
    fn of(socket: &UdpSocket) -> Self {
        let inode = fstat(socket.as_fd()).ok().map(|found| found.st_ino.to_string());
        Self { inode, known_drops: 0 }
    }

    /// Returns the number of drops since the last call.
    fn take_new(&mut self) -> u64 {
        let Some(inode) = &self.inode else { return 0 };
        let tables = ["/proc/net/udp", "/proc/net/udp6"].into_iter();
        let mut tables = tables.filter_map(|table| fs::read_to_string(table).ok());
        let all = tables.find_map(|table| drops(&table, inode)).unwrap_or(self.known_drops);
        let new = all.saturating_sub(self.known_drops);
        self.known_drops = all;
        new
    }
}

/// Returns the last column of the socket's line; the tenth column is the inode (proc(5),
/// `/proc/net/udp`).
fn drops(table: &str, inode: &str) -> Option<u64> {
    let line = table.lines().find(|line| line.split_whitespace().nth(9) == Some(inode))?;
    line.split_whitespace().last()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_of_a_socket_are_read_from_the_kernels_table() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   \
                     uid  timeout inode ref pointer drops\n \
                     614: 0100007F:0801 00000000:0000 07 00000000:00000000 00:00000000 00000000     \
                     0        0 38921 2 0000000000000000 17\n";
        assert_eq!(drops(table, "38921"), Some(17));
        assert_eq!(drops(table, "3892"), None);
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(KernelDrops::of(&socket).take_new(), 0);
    }
}
