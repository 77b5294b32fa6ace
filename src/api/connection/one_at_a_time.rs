//! A connection that hands one request at a time to the HTTP server.
//!
//! What a client sends behind a request waits outside of the process until that request is
//! answered. The HTTP server alone would parse up to 128 KiB of requests that are sent without
//! reading any answer, thousands of them, each of which takes 50 times its bytes.

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

/// Bytes read ahead, to find the end of a head.
const READ_BYTES: usize = 8 << 10;

/// Whose turn it is on a connection: the client's to send, or the daemon's to answer.
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

/// Lets the client's next request in when it is dropped.
#[derive(Debug)]
pub(crate) struct TurnEnd(pub(crate) Option<ConnectionTurn>);

impl Drop for TurnEnd {
    fn drop(&mut self) {
        if let Some(turn) = &self.0 {
            turn.end();
        }
    }
}

/// The body of an answer, with what lets the next request in when it is done with.
#[derive(Debug)]
pub(crate) struct Answered<B> {
    pub(crate) body: B,
    pub(crate) _end: TurnEnd,
}

impl<B: MessageBody + Unpin> MessageBody for Answered<B> {
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

/// See the module.
#[derive(Debug)]
pub struct OneAtATime<T> {
    io: T,
    turn: ConnectionTurn,
    framing: Framing,
    /// Read, and not handed on yet; the first `cleared` of them may be.
    held: BytesMut,
    cleared: usize,
    at_end: bool,
}

impl<T> OneAtATime<T> {
    /// Wraps a new connection.
    pub fn new(io: T) -> Self {
        Self {
            io,
            turn: ConnectionTurn::default(),
            framing: Framing::begin(),
            held: BytesMut::new(),
            cleared: 0,
            at_end: false,
        }
    }

    /// What is wrapped.
    pub fn inner(&self) -> &T {
        &self.io
    }

    /// The connection's turn, to be ended by [`TurnEnd`].
    pub(crate) fn turn(&self) -> ConnectionTurn {
        self.turn.clone()
    }

    /// Hands on what may go on; false when there is nothing.
    fn hand_on(&mut self, out: &mut ReadBuf<'_>) -> bool {
        if self.framing.is_whole() && self.cleared == 0 && self.turn.0.answered.take() {
            self.framing = Framing::begin();
        }
        if self.cleared == 0 {
            self.cleared = self.framing.pass(&self.held);
        }
        if self.at_end && !self.framing.is_whole() {
            // The request is cut short.
            self.cleared = self.held.len();
        }
        let bytes = self.cleared.min(out.remaining());
        out.put_slice(&self.held[..bytes]);
        self.held.advance(bytes);
        self.cleared -= bytes;
        bytes > 0
    }
}

impl<T: AsyncRead + Unpin> OneAtATime<T> {
    /// Reads bytes of a body to where they are wanted, without a stop in between.
    fn read_body(
        &mut self,
        left: u64,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let room = usize::try_from(left).unwrap_or(usize::MAX).min(out.remaining());
        let mut own = ReadBuf::new(out.initialize_unfilled_to(room));
        ready!(Pin::new(&mut self.io).poll_read(cx, &mut own))?;
        let bytes = own.filled().len();
        self.at_end = bytes == 0;
        self.framing.pass(own.filled());
        out.advance(bytes);
        Poll::Ready(Ok(()))
    }

    /// Reads ahead.
    fn fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut bytes = [0; READ_BYTES];
        let mut own = ReadBuf::new(&mut bytes);
        ready!(Pin::new(&mut self.io).poll_read(cx, &mut own))?;
        self.at_end = own.filled().is_empty();
        self.held.extend_from_slice(own.filled());
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
            if this.hand_on(out) {
                return Poll::Ready(Ok(()));
            }
            if this.framing.is_whole() {
                *this.turn.0.reader.borrow_mut() = Some(cx.waker().clone());
                // With nothing held the socket is still watched: a client that leaves is noticed.
                if !this.held.is_empty() {
                    return Poll::Pending;
                }
            }
            if this.at_end {
                return Poll::Ready(Ok(()));
            }
            match this.framing.body_left() {
                Some(left) if this.held.is_empty() => return this.read_body(left, cx, out),
                _ => ready!(this.fill(cx))?,
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
