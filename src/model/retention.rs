//! The retention of a granularity, which can change while a store is open.
//!
//! Must never know: granularities, who changes a retention.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use super::Span;

/// A retention that all clones share, so that a change applies to all of them at the same time.
#[derive(Debug, Clone)]
pub(super) struct Retention(Arc<AtomicI64>);

impl Retention {
    pub(super) fn new(span: Span) -> Self {
        Self(Arc::new(AtomicI64::new(encode(span))))
    }

    pub(super) fn get(&self) -> Span {
        decode(self.0.load(Ordering::Acquire))
    }

    pub(super) fn set(&self, span: Span) {
        self.0.store(encode(span), Ordering::Release);
    }
}

impl PartialEq for Retention {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Retention {}

/// Encodes a span in a number: months are negative.
fn encode(span: Span) -> i64 {
    match span {
        Span::Fixed(ms) => ms.max(0),
        Span::Months(months) => -i64::from(months),
    }
}

fn decode(code: i64) -> Span {
    if code < 0 { Span::Months(-code as i32) } else { Span::Fixed(code) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_share_a_change() {
        let first = Retention::new(Span::Fixed(5000));
        let second = first.clone();
        assert_eq!(second.get(), Span::Fixed(5000));
        second.set(Span::Months(60));
        assert_eq!(first.get(), Span::Months(60));
        assert_eq!(first, Retention::new(Span::Months(60)));
    }
}
