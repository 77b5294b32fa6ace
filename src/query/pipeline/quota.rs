//! Limits for the values that a pipeline holds and creates. Values and their memory are charged
//! before they are created.
//!
//! Must never know: stages, the store.

use std::cell::Cell;

use super::value::{DEPTH_MAX, Fields, Value};
use crate::query::{Budget, QueryError};

/// Maximum number of values that stages process or create, as a multiple of the values that they
/// may hold.
const STEPS_PER_HELD: usize = 40;

/// Memory of a value with its name, including the reserve of its list.
const VALUE_BYTES: usize = 96;

/// Minimum number of bytes that are charged to the budget at a time.
const PIECE_BYTES: usize = 64 << 10;

/// Number of values read or created between checks of the budget.
const VALUES_AT_A_TIME: usize = 2048;

/// The quota of a pipeline.
pub(super) struct Quota<'a> {
    values_max: usize,
    steps: Cell<usize>,
    /// Bytes of all live values.
    bytes: Cell<usize>,
    /// Bytes charged to the budget: the maximum of live bytes so far.
    charged: Cell<usize>,
    /// Values since the last check.
    unchecked: Cell<usize>,
    budget: &'a Budget,
}

impl<'a> Quota<'a> {
    /// Creates a quota with a maximum number of values per stage.
    pub(super) fn new(values_max: usize, budget: &'a Budget) -> Self {
        let (steps, bytes) = (Cell::new(0), Cell::new(0));
        let (charged, unchecked) = (Cell::new(0), Cell::new(0));
        Self { values_max, steps, bytes, charged, unchecked, budget }
    }

    /// Returns the query's budget, for work that is not counted in values.
    pub(super) fn budget(&self) -> &'a Budget {
        self.budget
    }

    fn check_after(&self, values: usize) -> Result<(), QueryError> {
        let unchecked = self.unchecked.get().saturating_add(values);
        self.unchecked.set(unchecked);
        if unchecked >= VALUES_AT_A_TIME {
            self.unchecked.set(0);
            self.budget.check()?;
        }
        Ok(())
    }

    /// Creates an empty share of the quota for a document or a stage.
    pub(super) fn new_share(&'a self, stage: usize) -> Share<'a> {
        Share { quota: self, stage, values: 0, bytes: 0 }
    }

    fn charge_steps(&self, values: usize) -> Result<(), QueryError> {
        self.check_after(values)?;
        let steps = self.steps.get().saturating_add(values);
        self.steps.set(steps);
        if steps > self.values_max.saturating_mul(STEPS_PER_HELD) {
            return Err(QueryError::TooMuch(format!(
                "more than {STEPS_PER_HELD} times {} values pass through the pipeline: match \
                 fewer series or a shorter range, or raise limits.query_points_max",
                self.values_max
            )));
        }
        Ok(())
    }

    fn reserve_bytes(&self, bytes: usize) -> Result<(), QueryError> {
        let bytes = self.bytes.get().saturating_add(bytes);
        if let Some(more) = bytes.checked_sub(self.charged.get()).filter(|more| *more > 0) {
            let more = more.max(PIECE_BYTES);
            self.budget.reserve(more)?;
            self.charged.set(self.charged.get() + more);
        }
        self.bytes.set(bytes);
        Ok(())
    }
}

/// The share of a document, or of a stage that holds documents. Dropping the share returns its
/// values to the quota.
pub(super) struct Share<'a> {
    quota: &'a Quota<'a>,
    stage: usize,
    values: usize,
    bytes: usize,
}

impl<'a> Share<'a> {
    /// Charges bytes.
    pub(super) fn charge_bytes(&mut self, bytes: usize) -> Result<(), QueryError> {
        self.quota.reserve_bytes(bytes)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Charges values that are read, not created.
    pub(super) fn charge_read(&mut self, values: usize) -> Result<(), QueryError> {
        let all = self.values.saturating_add(values);
        if all > self.quota.values_max {
            return Err(QueryError::TooMuch(format!(
                "pipeline[{}] would hold more than {} values: match or group to fewer, or raise \
                 limits.query_points_max",
                self.stage, self.quota.values_max
            )));
        }
        self.quota.check_after(values)?;
        self.charge_bytes(values.saturating_mul(VALUE_BYTES))?;
        self.values = all;
        Ok(())
    }

    /// Charges values that are created.
    pub(super) fn charge(&mut self, values: usize) -> Result<(), QueryError> {
        self.quota.charge_steps(values)?;
        self.charge_read(values)
    }

    /// Copies a value and charges the copy.
    pub(super) fn copy(&mut self, value: &Value) -> Result<Value, QueryError> {
        self.charge_sized(value.size())?;
        Ok(value.clone())
    }

    /// Copies a document and charges the copy.
    pub(super) fn copy_fields(&mut self, fields: &Fields) -> Result<Fields, QueryError> {
        self.charge_sized(fields.size())?;
        Ok(fields.clone())
    }

    /// Charges a value of a known size; `None` means that it is nested too deeply.
    pub(super) fn charge_sized(&mut self, size: Option<usize>) -> Result<(), QueryError> {
        self.charge(size.ok_or_else(|| self.too_deep())?)
    }

    /// Moves a document to a stage. Temporary values that are no longer part of the document are
    /// released.
    pub(super) fn enter(&mut self, stage: usize, document: &Fields) -> Result<(), QueryError> {
        self.stage = stage;
        let size = document.size().ok_or_else(|| self.too_deep())?;
        self.quota.charge_steps(size)?;
        let surplus = self.values.saturating_sub(size);
        self.release(surplus, surplus * VALUE_BYTES);
        Ok(())
    }

    /// Returns the query's budget; see [`Quota::budget`].
    pub(super) fn budget(&self) -> &'a Budget {
        self.quota.budget()
    }

    /// Creates an empty share at the same stage.
    pub(super) fn sibling(&self) -> Share<'a> {
        self.quota.new_share(self.stage)
    }

    fn release(&mut self, values: usize, bytes: usize) {
        self.values -= values;
        self.bytes -= bytes;
        self.quota.bytes.set(self.quota.bytes.get().saturating_sub(bytes));
    }

    fn too_deep(&self) -> QueryError {
        let stage = self.stage;
        QueryError::TooMuch(format!("documents of pipeline[{stage}] nest deeper than {DEPTH_MAX}"))
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.release(self.values, self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_charged_for_live_values_only() {
        let budget = Budget::of_memory(2 * PIECE_BYTES);
        let quota = Quota::new(100_000, &budget);
        for _ in 0..10 {
            let mut share = quota.new_share(0);
            share.charge(PIECE_BYTES / VALUE_BYTES).unwrap();
        }
        assert_eq!(budget.reserved(), PIECE_BYTES);
        let (mut first, mut second) = (quota.new_share(0), quota.new_share(1));
        first.charge(PIECE_BYTES / VALUE_BYTES).unwrap();
        second.charge(PIECE_BYTES / VALUE_BYTES).unwrap();
        assert!(
            second.charge(PIECE_BYTES).unwrap_err().to_string().contains("limits.query_memory_max")
        );
        drop(first);
        second.charge(PIECE_BYTES / VALUE_BYTES).unwrap();
    }
}
