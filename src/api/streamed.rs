//! An answer that is written in chunks while the client reads it, so that a large one is never in
//! memory as a whole; a small one is answered in one piece, with its length.
//!
//! Must never know: what is answered.

use std::io::{self, Write};

use actix_web::{HttpResponse, web::Bytes};
use futures_util::stream;
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

use super::held::HeldBody;

/// Bytes that are handed to the connection at a time.
const CHUNK_BYTES: usize = 64 << 10;
/// Room for a small answer.
const FIRST_BYTES: usize = 8 << 10;
/// Chunks that wait for the client; full: the query's thread waits, and with it its place among
/// the queries. A client that reads nothing is cut off by `server.client_timeout`.
const CHUNKS_WAITING: usize = 4;

/// The beginning of an answer, or why there is none.
#[derive(Debug)]
pub(super) enum Begun<E> {
    /// All of it, with the place among the queries that it keeps until it is read.
    Whole(Vec<u8>, OwnedSemaphorePermit),
    /// More than a chunk.
    Chunks(mpsc::Receiver<io::Result<Bytes>>),
    /// The query failed.
    Failed(E),
}

/// Runs a query and writes its answer; the receiver gets the beginning as soon as there is one,
/// and nothing when the query panics. To be called where waiting is allowed.
pub(super) fn write<T: Serialize, E>(
    begun: oneshot::Sender<Begun<E>>,
    permit: OwnedSemaphorePermit,
    run: impl FnOnce() -> Result<T, E>,
) {
    let found = match run() {
        Ok(found) => found,
        Err(cause) => return drop(begun.send(Begun::Failed(cause))),
    };
    let mut writer =
        ChunkWriter { begun: Some(begun), chunk: Vec::with_capacity(FIRST_BYTES), chunks: None };
    match serde_json::to_writer(&mut writer, &found) {
        Ok(()) => writer.finish(permit),
        Err(cause) => writer.fail(cause.into()),
    }
}

/// The response that sends it.
pub(super) fn response<E>(begun: Begun<E>) -> Result<HttpResponse, E> {
    let mut builder = HttpResponse::Ok();
    builder.content_type("application/json");
    match begun {
        Begun::Failed(cause) => Err(cause),
        Begun::Chunks(mut chunks) => {
            Ok(builder.streaming(stream::poll_fn(move |context| chunks.poll_recv(context))))
        }
        Begun::Whole(body, permit) => Ok(builder
            .message_body(HeldBody::new(body, permit))
            .map_or_else(HttpResponse::from_error, HttpResponse::map_into_boxed_body)),
    }
}

struct ChunkWriter<E> {
    /// Taken when the beginning is sent.
    begun: Option<oneshot::Sender<Begun<E>>>,
    chunk: Vec<u8>,
    chunks: Option<mpsc::Sender<io::Result<Bytes>>>,
}

impl<E> ChunkWriter<E> {
    fn send(&mut self, chunk: io::Result<Bytes>) -> io::Result<()> {
        if let Some(begun) = self.begun.take() {
            let (sender, receiver) = mpsc::channel(CHUNKS_WAITING);
            self.chunks = Some(sender);
            begun.send(Begun::Chunks(receiver)).map_err(|_| io::ErrorKind::BrokenPipe)?;
        }
        // Without a reader there is nothing more to do.
        let sent = self.chunks.as_ref().map(|chunks| chunks.blocking_send(chunk));
        sent.and_then(Result::ok).ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }

    fn finish(mut self, permit: OwnedSemaphorePermit) {
        let rest = std::mem::take(&mut self.chunk);
        if let Some(begun) = self.begun.take() {
            return drop(begun.send(Begun::Whole(rest, permit)));
        }
        drop(self.send(Ok(rest.into())));
        // Before the client sees the end, which is when this writer is dropped.
        drop(permit);
    }

    /// Breaks the answer off, so that the client does not take it for a whole one.
    fn fail(mut self, cause: io::Error) {
        drop(self.send(Err(cause)));
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
    use std::sync::Arc;

    use tokio::sync::Semaphore;

    use super::*;

    fn begin(numbers: usize) -> (oneshot::Receiver<Begun<String>>, Arc<Semaphore>) {
        let places = Arc::new(Semaphore::new(1));
        let permit = places.clone().try_acquire_owned().unwrap();
        let (sender, receiver) = oneshot::channel();
        std::thread::spawn(move || write(sender, permit, || Ok(vec![7; numbers])));
        (receiver, places)
    }

    #[test]
    fn a_small_answer_comes_whole_and_keeps_its_place_until_it_is_read() {
        let (receiver, places) = begin(3);
        let Begun::Whole(body, permit) = receiver.blocking_recv().unwrap() else { panic!() };
        assert_eq!((&body[..], places.available_permits()), (&b"[7,7,7]"[..], 0));
        drop(permit);
        assert_eq!(places.available_permits(), 1);
    }

    #[test]
    fn a_large_answer_comes_in_chunks_and_waits_for_its_reader() {
        const NUMBERS: usize = 500_000;
        let (receiver, places) = begin(NUMBERS);
        let Begun::Chunks(mut chunks) = receiver.blocking_recv().unwrap() else { panic!() };
        assert_eq!(places.available_permits(), 0);
        let mut body = Vec::new();
        while let Some(chunk) = chunks.blocking_recv() {
            let chunk = chunk.unwrap();
            assert!(chunk.len() <= CHUNK_BYTES);
            body.extend_from_slice(&chunk);
        }
        let numbers: Vec<i32> = serde_json::from_slice(&body).unwrap();
        assert_eq!(numbers.len(), NUMBERS);
    }

    #[test]
    fn a_reader_that_leaves_ends_the_query_and_a_failure_is_told() {
        let (receiver, places) = begin(500_000);
        drop(receiver);
        let waited = std::thread::spawn(move || {
            while places.available_permits() == 0 {
                std::thread::yield_now();
            }
        });
        waited.join().unwrap();
        let permit = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        let (sender, receiver) = oneshot::channel();
        write::<(), _>(sender, permit, || Err("no"));
        assert!(matches!(receiver.blocking_recv(), Ok(Begun::Failed("no"))));
    }
}
