//! An answer that keeps its place among the queries until the client has read it, so that slow
//! readers cannot pile up large answers in memory.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use actix_web::{
    body::{BodySize, MessageBody},
    web::Bytes,
};
use tokio::sync::OwnedSemaphorePermit;

/// Bytes handed to the connection at a time; it asks for more when these are on their way.
const CHUNK_BYTES: usize = 64 << 10;

/// See the module.
#[derive(Debug)]
pub(super) struct HeldBody {
    rest: Bytes,
    _permit: OwnedSemaphorePermit,
}

impl HeldBody {
    pub(super) fn new(body: Vec<u8>, permit: OwnedSemaphorePermit) -> Self {
        Self { rest: body.into(), _permit: permit }
    }
}

impl MessageBody for HeldBody {
    type Error = Infallible;

    fn size(&self) -> BodySize {
        BodySize::Sized(self.rest.len() as u64)
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Infallible>>> {
        let next = self.rest.len().min(CHUNK_BYTES);
        Poll::Ready((next > 0).then(|| Ok(self.rest.split_to(next))))
    }
}
