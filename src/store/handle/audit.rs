//! The audit, as its writer and its readers use it.
//!
//! Must never know: what a record means.

use std::{ops::ControlFlow, sync::Arc};

use super::Store;
use crate::{
    model::AuditRecord,
    store::{audit::AuditLog, error::StoreError, file::medium::Medium},
};

/// Appends records to the audit of a stopped data directory, durably, and numbers them.
///
/// # Errors
/// When a file cannot be read or written.
pub fn append_audit(medium: &Arc<dyn Medium>, records: Vec<AuditRecord>) -> Result<(), StoreError> {
    AuditLog::open(medium.clone())?.append(records)
}

impl Store {
    /// Appends records to the audit, durably, and numbers them.
    ///
    /// # Errors
    /// When the file cannot be written; none of the records is then stored.
    pub fn append_audit(&self, records: Vec<AuditRecord>) -> Result<(), StoreError> {
        self.inner.audit.append(records)
    }

    /// Visits the records of the audit whose number is below `before`, from the newest to the
    /// oldest, until the visitor ends it. Returns the number of damaged lines.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn visit_audit_backwards(
        &self,
        before: u64,
        visit: &mut dyn FnMut(AuditRecord) -> ControlFlow<()>,
    ) -> Result<u64, StoreError> {
        self.inner.audit.visit_backwards(before, visit)
    }

    /// Returns the bytes of the audit's files on the medium.
    pub fn audit_bytes(&self) -> u64 {
        self.inner.audit.allocated_bytes()
    }
}
