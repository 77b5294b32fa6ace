//! The measured sizes from which disk space is forecast.
//!
//! Must never know: the free space, and who needs the forecast.

use super::Store;
use crate::model::{GranularityIndex, UnixMillis};

impl Store {
    /// Returns the sealed bytes of the last document period of a granularity that ended by a time;
    /// `None` when no period has sealed documents.
    pub fn last_period_bytes(&self, index: GranularityIndex, by: UnixMillis) -> Option<u64> {
        self.inner.documents.last_period_bytes(index, by)
    }
}
