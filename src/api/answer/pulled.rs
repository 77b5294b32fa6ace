//! A body that produces its next chunk when the connection asks for it, and the memory that the
//! body holds until it is read.
//!
//! Must never know: what the body contains.

use std::{
    cell::{Cell, RefCell},
    io,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
};

use actix_web::{
    body::{BodySize, MessageBody},
    rt::task::JoinHandle,
    web::Bytes,
};

use super::slow::SlowReaders;
use crate::query::Reservation;

/// A function that returns the next chunk, or `None` at the end.
type NextChunk = Box<dyn FnMut() -> Option<Bytes>>;

/// The rest of a body with its memory; empty after a timeout.
struct RemainingBody {
    answer: RefCell<Option<(NextChunk, Option<Reservation>)>>,
    /// The number of chunks that the connection asked for.
    chunks: Cell<u64>,
}

/// The body.
pub(in crate::api) struct PulledBody {
    remaining: Rc<RemainingBody>,
    watch: JoinHandle<()>,
}

impl PulledBody {
    /// Creates a body that holds the memory until it is read, abandoned by its reader, or timed
    /// out.
    pub(in crate::api) fn new(
        next: impl FnMut() -> Option<Bytes> + 'static,
        memory: Option<Reservation>,
        slow: SlowReaders,
    ) -> Self {
        let answer = RefCell::new(Some((Box::new(next) as NextChunk, memory)));
        let remaining = Rc::new(RemainingBody { answer, chunks: Cell::new(0) });
        let watch = actix_web::rt::spawn(watch(remaining.clone(), slow));
        Self { remaining, watch }
    }
}

/// Drops the rest of a body when no chunk was read in time, so that its memory is free even while
/// the connection stays open.
async fn watch(remaining: Rc<RemainingBody>, slow: SlowReaders) {
    let mut seen = None;
    while seen != Some(remaining.chunks.get()) {
        seen = Some(remaining.chunks.get());
        tokio::time::sleep(slow.chunk_timeout).await;
    }
    remaining.answer.take();
    slow.aborted.inc();
}

impl Drop for PulledBody {
    fn drop(&mut self) {
        self.watch.abort();
        self.remaining.answer.take();
    }
}

impl MessageBody for PulledBody {
    type Error = io::Error;

    fn size(&self) -> BodySize {
        BodySize::Stream
    }

    fn poll_next(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, io::Error>>> {
        self.remaining.chunks.set(self.remaining.chunks.get() + 1);
        let mut answer = self.remaining.answer.borrow_mut();
        let Some((next, _)) = answer.as_mut() else {
            // The error keeps the client from mistaking the part for the whole response.
            return Poll::Ready(Some(Err(io::ErrorKind::TimedOut.into())));
        };
        Poll::Ready(next().map(Ok))
    }
}
