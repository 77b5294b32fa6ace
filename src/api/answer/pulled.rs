//! A body whose next chunk is made when the connection asks for it, and what it holds until it is
//! read.
//!
//! Must never know: what is answered.

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

use super::slow::Slow;
use crate::query::Reservation;

/// Makes the next chunk; none when there is no more.
type NextChunk = Box<dyn FnMut() -> Option<Bytes>>;

/// What is left of an answer, with the memory that it takes; nothing when its reader is too slow.
struct Left {
    answer: RefCell<Option<(NextChunk, Option<Reservation>)>>,
    /// Chunks that the connection has asked for.
    chunks: Cell<u64>,
}

/// The body.
pub(in crate::api) struct PulledBody {
    left: Rc<Left>,
    watch: JoinHandle<()>,
}

impl PulledBody {
    /// Holds the memory until the body is dropped: it was read, or the reader is gone or too slow.
    pub(in crate::api) fn new(
        next: impl FnMut() -> Option<Bytes> + 'static,
        memory: Option<Reservation>,
        slow: Slow,
    ) -> Self {
        let answer = RefCell::new(Some((Box::new(next) as NextChunk, memory)));
        let left = Rc::new(Left { answer, chunks: Cell::new(0) });
        let watch = actix_web::rt::spawn(watch(left.clone(), slow));
        Self { left, watch }
    }
}

/// Gives up an answer of which no chunk was asked for in time: what it takes is free again, however
/// long the connection lasts.
async fn watch(left: Rc<Left>, slow: Slow) {
    let mut seen = None;
    while seen != Some(left.chunks.get()) {
        seen = Some(left.chunks.get());
        tokio::time::sleep(slow.chunk_within).await;
    }
    left.answer.take();
    slow.broken_off.inc();
}

impl Drop for PulledBody {
    fn drop(&mut self) {
        self.watch.abort();
        self.left.answer.take();
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
        self.left.chunks.set(self.left.chunks.get() + 1);
        let mut answer = self.left.answer.borrow_mut();
        let Some((next, _)) = answer.as_mut() else {
            // The client must not take it for a whole answer.
            return Poll::Ready(Some(Err(io::ErrorKind::TimedOut.into())));
        };
        Poll::Ready(next().map(Ok))
    }
}
