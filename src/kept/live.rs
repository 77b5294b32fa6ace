//! Values that are replaced while the daemon runs, such as settings.
//!
//! Must never know: which values change, and why.

use std::sync::{Arc, PoisonError, RwLock};

/// A value that one owner replaces and many readers read. All clones share the value.
#[derive(Debug, Default)]
pub struct LiveValue<T>(Arc<RwLock<Arc<T>>>);

impl<T> Clone for LiveValue<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> LiveValue<T> {
    /// Creates a value that can be replaced later.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_keeps_the_value_that_it_got() {
        let value = LiveValue::new(1);
        let (clone, before) = (value.clone(), value.get());
        clone.set(2);
        assert_eq!((*before, *value.get()), (1, 2));
    }
}
