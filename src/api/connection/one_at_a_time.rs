//! A connection that passes one request at a time to the HTTP server.
//!
//! Pipelined requests stay in the kernel's buffers until the current request is answered. Without
//! this, the HTTP server would parse up to 128 KiB of requests from a client that reads no
//! answers: thousands of requests, each of which takes 50 times its bytes.

use std::{
    cell::{Cell, RefCell},
    io,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, Waker, ready},
};

use actix_web::{
    body::{BodySize, MessageBody},
    web::{Buf, Bytes, BytesMut},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::framing::Framing;

/// The number of bytes read at once to find the end of a head.
const READ_BYTES: usize = 8 << 10;

/// The turn on a connection: either the client sends, or the daemon answers.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConnectionTurn(Rc<TurnState>);

#[derive(Debug, Default)]
struct TurnState {
    answered: Cell<bool>,
    reader: RefCell<Option<Waker>>,
}

impl ConnectionTurn {
    fn end(&self) {
        self.0.answered.set(true);
        if let Some(reader) = self.0.reader.take() {
            reader.wake();
        }
    }
}

/// A guard that admits the client's next request when it is dropped.
#[derive(Debug)]
pub(crate) struct TurnEnd(pub(crate) Option<ConnectionTurn>);

impl Drop for TurnEnd {
    fn drop(&mut self) {
        if let Some(turn) = &self.0 {
            turn.end();
        }
    }
}

/// The body of an answer; dropping it admits the next request.
#[derive(Debug)]
pub(crate) struct AnswerBody<B> {
    pub(crate) body: B,
    pub(crate) _end: TurnEnd,
}

impl<B: MessageBody + Unpin> MessageBody for AnswerBody<B> {
    type Error = B::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Pin::new(&mut self.body).poll_next(cx)
    }
}

/// A connection with one request at a time. See the module.
#[derive(Debug)]
pub struct OneAtATime<T> {
    io: T,
    turn: ConnectionTurn,
    framing: Framing,
    /// Bytes that were read but not passed on; the first `passable` bytes may be passed on.
    buffered: BytesMut,
    passable: usize,
    at_end: bool,
}

impl<T> OneAtATime<T> {
    /// Wraps a new connection.
    pub fn new(io: T) -> Self {
        Self {
            io,
            turn: ConnectionTurn::default(),
            framing: Framing::start(),
            buffered: BytesMut::new(),
            passable: 0,
            at_end: false,
        }
    }

    /// Returns the wrapped connection.
    pub fn inner(&self) -> &T {
        &self.io
    }

    /// Returns the connection's turn, which [`TurnEnd`] ends.
    pub(crate) fn turn(&self) -> ConnectionTurn {
        self.turn.clone()
    }

    /// Passes on the cleared bytes; returns false when there are none.
    fn pass_on(&mut self, out: &mut ReadBuf<'_>) -> bool {
        if self.framing.is_complete() && self.passable == 0 && self.turn.0.answered.take() {
            self.framing = Framing::start();
        }
        if self.passable == 0 {
            self.passable = self.framing.pass(&self.buffered);
        }
        if self.at_end && !self.framing.is_complete() {
            // The client disconnected in the middle of a request.
            self.passable = self.buffered.len();
        }
        let bytes = self.passable.min(out.remaining());
        out.put_slice(&self.buffered[..bytes]);
        self.buffered.advance(bytes);
        self.passable -= bytes;
        bytes > 0
    }
}

impl<T: AsyncRead + Unpin> OneAtATime<T> {
    /// Reads bytes of a body directly into the target.
    fn read_body(
        &mut self,
        left: u64,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let room = usize::try_from(left).unwrap_or(usize::MAX).min(out.remaining());
        let mut read = ReadBuf::new(out.initialize_unfilled_to(room));
        ready!(Pin::new(&mut self.io).poll_read(cx, &mut read))?;
        let bytes = read.filled().len();
        self.at_end = bytes == 0;
        self.framing.pass(read.filled());
        out.advance(bytes);
        Poll::Ready(Ok(()))
    }

    /// Reads bytes ahead.
    fn read_ahead(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut bytes = [0; READ_BYTES];
        let mut read = ReadBuf::new(&mut bytes);
        ready!(Pin::new(&mut self.io).poll_read(cx, &mut read))?;
        self.at_end = read.filled().is_empty();
        self.buffered.extend_from_slice(read.filled());
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for OneAtATime<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            if this.pass_on(out) {
                return Poll::Ready(Ok(()));
            }
            if this.framing.is_complete() {
                *this.turn.0.reader.borrow_mut() = Some(cx.waker().clone());
                // Without held bytes, the socket is still read, to notice when the client
                // disconnects.
                if !this.buffered.is_empty() {
                    return Poll::Pending;
                }
            }
            if this.at_end {
                return Poll::Ready(Ok(()));
            }
            match this.framing.missing_body() {
                Some(left) if this.buffered.is_empty() => return this.read_body(left, cx, out),
                _ => ready!(this.read_ahead(cx))?,
            }
        }
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for OneAtATime<T> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().io).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_shutdown(cx)
    }
}
