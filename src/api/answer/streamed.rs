//! An answer that is written in chunks while the client reads it, so that a large one is never in
//! memory as a whole; a small one is answered in one piece, with its length.
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

use super::slow::{CHUNK_BYTES, Slow};
use crate::query::Reservation;

/// Room for a small answer.
const FIRST_BYTES: usize = 8 << 10;
/// Chunks that wait for the client; full: the query's thread waits, and with it its place among
/// the queries, at most for [`Slow::chunk_within`].
const CHUNKS_WAITING: usize = 4;

/// The beginning of an answer, or why there is none.
#[derive(Debug)]
pub(in crate::api) enum Begun<E> {
    /// All of it: no more than a chunk, so it needs no place among the queries any more.
    Whole(Vec<u8>),
    /// More than a chunk.
    Chunks(mpsc::Receiver<io::Result<Bytes>>),
    /// The query failed.
    Failed(E),
}

/// Runs a query and writes its answer; the receiver gets the beginning as soon as there is one,
/// and nothing when the query panics. The memory that comes with the answer is held until it is
/// written. To be called in a runtime, where waiting is allowed.
pub(in crate::api) fn write<T: Serialize, E>(
    begun: oneshot::Sender<Begun<E>>,
    permit: OwnedSemaphorePermit,
    slow: Slow,
    run: impl FnOnce() -> Result<(T, Option<Reservation>), E>,
) {
    let (found, _memory) = match run() {
        Ok(found) => found,
        Err(cause) => {
            // Before the client sees it, as with a whole answer.
            drop(permit);
            return drop(begun.send(Begun::Failed(cause)));
        }
    };
    let chunk = Vec::with_capacity(FIRST_BYTES);
    let mut writer = ChunkWriter { begun: Some(begun), chunk, chunks: None, slow };
    match serde_json::to_writer(&mut writer, &found) {
        Ok(()) => writer.finish(permit),
        Err(cause) => writer.fail(cause.into()),
    }
}

/// The response that sends it.
pub(in crate::api) fn response<E>(begun: Begun<E>) -> Result<HttpResponse, E> {
    let mut builder = HttpResponse::Ok();
    builder.content_type("application/json");
    match begun {
        Begun::Failed(cause) => Err(cause),
        Begun::Chunks(mut chunks) => {
            Ok(builder.streaming(stream::poll_fn(move |context| chunks.poll_recv(context))))
        }
        Begun::Whole(body) => Ok(builder.body(body)),
    }
}

struct ChunkWriter<E> {
    /// Taken when the beginning is sent.
    begun: Option<oneshot::Sender<Begun<E>>>,
    chunk: Vec<u8>,
    chunks: Option<mpsc::Sender<io::Result<Bytes>>>,
    slow: Slow,
}

impl<E> ChunkWriter<E> {
    fn send(&mut self, chunk: io::Result<Bytes>) -> io::Result<()> {
        if let Some(begun) = self.begun.take() {
            let (sender, receiver) = mpsc::channel(CHUNKS_WAITING);
            self.chunks = Some(sender);
            begun.send(Begun::Chunks(receiver)).map_err(|_| io::ErrorKind::BrokenPipe)?;
        }
        let Some(chunks) = &self.chunks else { return Err(io::ErrorKind::BrokenPipe.into()) };
        let within = self.slow.chunk_within;
        let sent = Handle::current().block_on(async { timeout(within, chunks.send(chunk)).await });
        match sent {
            Ok(Ok(())) => Ok(()),
            // Without a reader there is nothing more to do.
            Ok(Err(_)) => Err(io::ErrorKind::BrokenPipe.into()),
            Err(_) => {
                self.slow.broken_off.inc();
                Err(io::ErrorKind::TimedOut.into())
            }
        }
    }

    fn finish(mut self, permit: OwnedSemaphorePermit) {
        let rest = std::mem::take(&mut self.chunk);
        if let Some(begun) = self.begun.take() {
            drop(permit);
            return drop(begun.send(Begun::Whole(rest)));
        }
        drop(self.send(Ok(rest.into())));
        // Before the client sees the end, which is when this writer is dropped.
        drop(permit);
    }

    /// Breaks the answer off, so that the client does not take it for a whole one.
    fn fail(mut self, cause: io::Error) {
        if cause.kind() != io::ErrorKind::TimedOut {
            return drop(self.send(Err(cause)));
        }
        // The chunks that wait go nowhere soon: the place is given back now, the end told when
        // there is room for it.
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

    fn slow(chunk_within: Duration) -> Slow {
        Slow { chunk_within, broken_off: prometheus::IntCounter::new("slow", "slow").unwrap() }
    }

    const PATIENT: Duration = Duration::from_secs(600);

    /// A query that answers with so many numbers.
    fn begin(numbers: usize, slow: Slow) -> (oneshot::Receiver<Begun<String>>, Arc<Semaphore>) {
        let places = Arc::new(Semaphore::new(1));
        let permit = places.clone().try_acquire_owned().unwrap();
        let (sender, receiver) = oneshot::channel();
        drop(spawn_blocking(move || write(sender, permit, slow, || Ok((vec![7; numbers], None)))));
        (receiver, places)
    }

    #[tokio::test]
    async fn a_small_answer_comes_whole_and_its_place_is_free_again() {
        let (receiver, places) = begin(3, slow(PATIENT));
        let Begun::Whole(body) = receiver.await.unwrap() else { panic!() };
        assert_eq!((&body[..], places.available_permits()), (&b"[7,7,7]"[..], 1));
    }

    #[tokio::test]
    async fn a_large_answer_comes_in_chunks_and_waits_for_its_reader() {
        const NUMBERS: usize = 500_000;
        let (receiver, places) = begin(NUMBERS, slow(PATIENT));
        let Begun::Chunks(mut chunks) = receiver.await.unwrap() else { panic!() };
        assert_eq!(places.available_permits(), 0);
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
    async fn a_reader_that_leaves_ends_the_query_and_a_failure_is_told() {
        let (receiver, places) = begin(500_000, slow(PATIENT));
        drop(receiver);
        drop(places.acquire().await.unwrap());
        let permit = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        let (sender, receiver) = oneshot::channel();
        write::<(), _>(sender, permit, slow(PATIENT), || Err("no"));
        assert!(matches!(receiver.await, Ok(Begun::Failed("no"))));
    }

    #[tokio::test]
    async fn a_reader_that_takes_nothing_loses_the_answer_and_its_place_is_free_again() {
        let slow = slow(Duration::from_millis(5));
        let broken_off = slow.broken_off.clone();
        let (receiver, places) = begin(500_000, slow);
        let Begun::Chunks(mut chunks) = receiver.await.unwrap() else { panic!() };
        drop(places.acquire().await.unwrap());
        assert_eq!(broken_off.get(), 1);
        let mut last = None;
        while let Some(chunk) = chunks.recv().await {
            last = Some(chunk);
        }
        assert!(last.unwrap().is_err(), "the client must not take it for a whole answer");
    }
}
