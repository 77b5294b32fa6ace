//! Values that change while the daemon runs.
//!
//! Must never know: which values change, and why.

use std::sync::{Arc, PoisonError, RwLock};

/// A value that one place replaces and many places read. All clones share the value.
#[derive(Debug, Default)]
pub struct Live<T>(Arc<RwLock<Arc<T>>>);

impl<T> Clone for Live<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Live<T> {
    /// Returns a value that can be replaced later.
    pub fn new(value: T) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(value))))
    }

    /// Returns the current value. A reader that needs several parts of one state calls this once.
    pub fn get(&self) -> Arc<T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the value.
    pub fn set(&self, value: T) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(value);
    }
}

impl<T> From<T> for Live<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_keeps_the_value_that_it_got() {
        let value = Live::new(1);
        let (clone, before) = (value.clone(), value.get());
        clone.set(2);
        assert_eq!((*before, *value.get()), (1, 2));
    }
}
