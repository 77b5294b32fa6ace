//! An answer in chunks, written while the client reads it: a large answer is never in memory as a
//! whole. A small answer is sent in one piece, with its length. Only for the store's own queries
//! (`api/query`); `pulled` serves answers of Prometheus' API.
//!
//! Must never know: what is answered.

use std::io::{self, Write};

use actix_web::{HttpResponse, web::Bytes};
use futures_util::stream;
use serde::Serialize;
use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, mpsc, oneshot},
    time::timeout,
};

use super::slow::{CHUNK_BYTES, SlowReaders};
use crate::query::Reservation;

/// The initial capacity of the first chunk.
const FIRST_BYTES: usize = 8 << 10;
/// The number of chunks that may wait for the client. When the queue is full, the query's thread
/// waits and keeps the query's permit, for at most the reader's time limit.
const CHUNKS_WAITING: usize = 4;

/// The start of an answer, or the query's error.
#[derive(Debug)]
pub(in crate::api) enum AnswerStart<E> {
    /// A whole answer that fits into a chunk; the query's permit has been released.
    Whole(Vec<u8>),
    /// A longer answer.
    Chunks(mpsc::Receiver<io::Result<Bytes>>),
    /// The error of the query.
    Failed(E),
}

/// Runs a query and writes its answer. `start` receives the beginning of the answer; when the query
/// panics, `start` is dropped. The memory of the answer is held until the answer is written. The
/// caller must be on a blocking thread of a runtime.
pub(in crate::api) fn write<T: Serialize, E>(
    start: oneshot::Sender<AnswerStart<E>>,
    permit: OwnedSemaphorePermit,
    slow: SlowReaders,
    run: impl FnOnce() -> Result<(T, Option<Reservation>), E>,
) {
    let (found, _memory) = match run() {
        Ok(found) => found,
        Err(cause) => {
            // The permit is released before the client sees the error, as with a whole answer.
            drop(permit);
            return drop(start.send(AnswerStart::Failed(cause)));
        }
    };
    let chunk = Vec::with_capacity(FIRST_BYTES);
    let mut writer = ChunkWriter { start: Some(start), chunk, chunks: None, slow };
    match serde_json::to_writer(&mut writer, &found) {
        Ok(()) => writer.finish(permit),
        Err(cause) => writer.fail(cause.into()),
    }
}

/// Returns the response for an answer.
pub(in crate::api) fn response<E>(start: AnswerStart<E>) -> Result<HttpResponse, E> {
    let mut builder = HttpResponse::Ok();
    builder.content_type("application/json");
    match start {
        AnswerStart::Failed(cause) => Err(cause),
        AnswerStart::Chunks(mut chunks) => {
            Ok(builder.streaming(stream::poll_fn(move |context| chunks.poll_recv(context))))
        }
        AnswerStart::Whole(body) => Ok(builder.body(body)),
    }
}

struct ChunkWriter<E> {
    /// The channel for the start; `None` after it was sent.
    start: Option<oneshot::Sender<AnswerStart<E>>>,
    chunk: Vec<u8>,
    chunks: Option<mpsc::Sender<io::Result<Bytes>>>,
    slow: SlowReaders,
}

impl<E> ChunkWriter<E> {
    fn send(&mut self, chunk: io::Result<Bytes>) -> io::Result<()> {
        if let Some(start) = self.start.take() {
            let (sender, receiver) = mpsc::channel(CHUNKS_WAITING);
            self.chunks = Some(sender);
            start.send(AnswerStart::Chunks(receiver)).map_err(|_| io::ErrorKind::BrokenPipe)?;
        }
        let Some(chunks) = &self.chunks else { return Err(io::ErrorKind::BrokenPipe.into()) };
        let chunk_timeout = self.slow.chunk_timeout;
        let sent =
            Handle::current().block_on(async { timeout(chunk_timeout, chunks.send(chunk)).await });
        match sent {
            Ok(Ok(())) => Ok(()),
            // The client has disconnected.
            Ok(Err(_)) => Err(io::ErrorKind::BrokenPipe.into()),
            Err(_) => {
                self.slow.aborted.inc();
                Err(io::ErrorKind::TimedOut.into())
            }
        }
    }

    fn finish(mut self, permit: OwnedSemaphorePermit) {
        let rest = std::mem::take(&mut self.chunk);
        if let Some(start) = self.start.take() {
            drop(permit);
            return drop(start.send(AnswerStart::Whole(rest)));
        }
        drop(self.send(Ok(rest.into())));
        // The permit is released before the writer is dropped, which ends the response.
        drop(permit);
    }

    /// Aborts the answer with an error, so that the client does not mistake it for a whole answer.
    fn fail(mut self, cause: io::Error) {
        if cause.kind() != io::ErrorKind::TimedOut {
            return drop(self.send(Err(cause)));
        }
        // The queue is full: the permit is released now, and the error follows when there is room.
        if let Some(chunks) = self.chunks.take() {
            drop(Handle::current().spawn(async move { chunks.send(Err(cause)).await }));
        }
    }
}

impl<E> Write for ChunkWriter<E> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.chunk.len() + bytes.len() > CHUNK_BYTES && !self.chunk.is_empty() {
            let next = Vec::with_capacity(CHUNK_BYTES);
            let full = std::mem::replace(&mut self.chunk, next);
            self.send(Ok(full.into()))?;
        }
        self.chunk.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use tokio::{sync::Semaphore, task::spawn_blocking};

    use super::*;

    fn slow(chunk_timeout: Duration) -> SlowReaders {
        SlowReaders { chunk_timeout, aborted: prometheus::IntCounter::new("slow", "slow").unwrap() }
    }

    const PATIENT: Duration = Duration::from_secs(600);

    /// Starts a query whose answer has `numbers` numbers.
    fn start_query(
        numbers: usize,
        slow: SlowReaders,
    ) -> (oneshot::Receiver<AnswerStart<String>>, Arc<Semaphore>) {
        let permits = Arc::new(Semaphore::new(1));
        let permit = permits.clone().try_acquire_owned().unwrap();
        let (sender, receiver) = oneshot::channel();
        drop(spawn_blocking(move || write(sender, permit, slow, || Ok((vec![7; numbers], None)))));
        (receiver, permits)
    }

    #[tokio::test]
    async fn a_small_answer_is_whole_and_releases_its_permit() {
        let (receiver, permits) = start_query(3, slow(PATIENT));
        let AnswerStart::Whole(body) = receiver.await.unwrap() else { panic!() };
        assert_eq!((&body[..], permits.available_permits()), (&b"[7,7,7]"[..], 1));
    }

    #[tokio::test]
    async fn a_large_answer_has_chunks_and_waits_for_its_reader() {
        const NUMBERS: usize = 500_000;
        let (receiver, permits) = start_query(NUMBERS, slow(PATIENT));
        let AnswerStart::Chunks(mut chunks) = receiver.await.unwrap() else { panic!() };
        assert_eq!(permits.available_permits(), 0);
        let mut body = Vec::new();
        while let Some(chunk) = chunks.recv().await {
            let chunk = chunk.unwrap();
            assert!(chunk.len() <= CHUNK_BYTES);
            body.extend_from_slice(&chunk);
        }
        let numbers: Vec<i32> = serde_json::from_slice(&body).unwrap();
        assert_eq!(numbers.len(), NUMBERS);
    }

    #[tokio::test]
    async fn a_query_ends_when_its_reader_leaves_and_errors_are_passed_on() {
        let (receiver, permits) = start_query(500_000, slow(PATIENT));
        drop(receiver);
        drop(permits.acquire().await.unwrap());
        let permit = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        let (sender, receiver) = oneshot::channel();
        write::<(), _>(sender, permit, slow(PATIENT), || Err("no"));
        assert!(matches!(receiver.await, Ok(AnswerStart::Failed("no"))));
    }

    #[tokio::test]
    async fn a_stuck_reader_loses_the_answer_and_its_permit() {
        let slow = slow(Duration::from_millis(5));
        let aborted = slow.aborted.clone();
        let (receiver, permits) = start_query(500_000, slow);
        let AnswerStart::Chunks(mut chunks) = receiver.await.unwrap() else { panic!() };
        drop(permits.acquire().await.unwrap());
        assert_eq!(aborted.get(), 1);
        let mut last = None;
        while let Some(chunk) = chunks.recv().await {
            last = Some(chunk);
        }
        assert!(last.unwrap().is_err(), "the end must be an error");
    }
}
