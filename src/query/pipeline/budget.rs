//! What a pipeline may hold and do: values are taken from it before they are built.
//!
//! Must never know: stages, and what values are.

use std::cell::Cell;

use super::value::{DEPTH_MAX, Fields, Value};
use crate::query::{QueryError, TakeMemory};

/// Values that may pass through stages or be made by them, as a multiple of those that may be held.
const STEPS_PER_HELD: usize = 40;

/// Bytes that a value takes with its name, and with what its list has in reserve.
const VALUE_BYTES: usize = 96;

/// Bytes are asked for so many at a time.
const PIECE_BYTES: usize = 64 << 10;

/// See the module.
pub(super) struct Budget<'a> {
    values_max: usize,
    steps: Cell<usize>,
    /// Bytes of all that lives.
    bytes: Cell<usize>,
    /// Bytes that were asked for: as many as ever lived.
    asked: Cell<usize>,
    take_memory: TakeMemory<'a>,
}

impl<'a> Budget<'a> {
    /// So many values at one place, and bytes as they are given.
    pub(super) fn new(values_max: usize, take_memory: TakeMemory<'a>) -> Self {
        let (steps, bytes, asked) = (Cell::new(0), Cell::new(0), Cell::new(0));
        Self { values_max, steps, bytes, asked, take_memory }
    }

    /// Nothing yet, for a document or a stage that holds many.
    pub(super) fn begin(&'a self, stage: usize) -> Taken<'a> {
        Taken { budget: self, stage, values: 0, bytes: 0 }
    }

    fn step(&self, values: usize) -> Result<(), QueryError> {
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

    fn grow(&self, bytes: usize) -> Result<(), QueryError> {
        let bytes = self.bytes.get().saturating_add(bytes);
        if let Some(more) = bytes.checked_sub(self.asked.get()).filter(|more| *more > 0) {
            let more = more.max(PIECE_BYTES);
            if !(self.take_memory)(more) {
                return Err(QueryError::no_memory());
            }
            self.asked.set(self.asked.get() + more);
        }
        self.bytes.set(bytes);
        Ok(())
    }
}

/// What one document takes, or the documents that a stage holds; given back when it is dropped.
pub(super) struct Taken<'a> {
    budget: &'a Budget<'a>,
    stage: usize,
    values: usize,
    bytes: usize,
}

impl<'a> Taken<'a> {
    /// Takes so many bytes.
    pub(super) fn take_bytes(&mut self, bytes: usize) -> Result<(), QueryError> {
        self.budget.grow(bytes)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Takes so many values that are read, not made.
    pub(super) fn take_read(&mut self, values: usize) -> Result<(), QueryError> {
        let all = self.values.saturating_add(values);
        if all > self.budget.values_max {
            return Err(QueryError::TooMuch(format!(
                "pipeline[{}] would hold more than {} values: match or group to fewer, or raise \
                 limits.query_points_max",
                self.stage, self.budget.values_max
            )));
        }
        self.take_bytes(values.saturating_mul(VALUE_BYTES))?;
        self.values = all;
        Ok(())
    }

    /// Takes so many values that are made.
    pub(super) fn take(&mut self, values: usize) -> Result<(), QueryError> {
        self.budget.step(values)?;
        self.take_read(values)
    }

    /// Copies a value.
    pub(super) fn copy(&mut self, value: &Value) -> Result<Value, QueryError> {
        self.take_sized(value.size())?;
        Ok(value.clone())
    }

    /// Copies a document.
    pub(super) fn copy_fields(&mut self, fields: &Fields) -> Result<Fields, QueryError> {
        self.take_sized(fields.size())?;
        Ok(fields.clone())
    }

    /// Takes what a value is of; `None` is one that nests too deep.
    pub(super) fn take_sized(&mut self, size: Option<usize>) -> Result<(), QueryError> {
        self.take(size.ok_or_else(|| self.too_deep())?)
    }

    /// Lets a document into a stage: what was made on the way to it and is not in it any more is
    /// given back.
    pub(super) fn enter(&mut self, stage: usize, document: &Fields) -> Result<(), QueryError> {
        self.stage = stage;
        let size = document.size().ok_or_else(|| self.too_deep())?;
        self.budget.step(size)?;
        let surplus = self.values.saturating_sub(size);
        self.give_back(surplus, surplus * VALUE_BYTES);
        Ok(())
    }

    /// Nothing yet, at the same stage.
    pub(super) fn another(&self) -> Taken<'a> {
        self.budget.begin(self.stage)
    }

    fn give_back(&mut self, values: usize, bytes: usize) {
        self.values -= values;
        self.bytes -= bytes;
        self.budget.bytes.set(self.budget.bytes.get().saturating_sub(bytes));
    }

    fn too_deep(&self) -> QueryError {
        let stage = self.stage;
        QueryError::TooMuch(format!("documents of pipeline[{stage}] nest deeper than {DEPTH_MAX}"))
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.give_back(self.values, self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lives_is_asked_for_once() {
        let given = Cell::new(0);
        let give = |bytes| {
            given.set(given.get() + bytes);
            given.get() <= 2 * PIECE_BYTES
        };
        let budget = Budget::new(100_000, &give);
        for _ in 0..10 {
            let mut taken = budget.begin(0);
            taken.take(PIECE_BYTES / VALUE_BYTES).unwrap();
        }
        assert_eq!(given.get(), PIECE_BYTES);
        let (mut one, mut other) = (budget.begin(0), budget.begin(1));
        one.take(PIECE_BYTES / VALUE_BYTES).unwrap();
        other.take(PIECE_BYTES / VALUE_BYTES).unwrap();
        assert!(other.take(PIECE_BYTES).unwrap_err().to_string().contains("promql.memory_max"));
        drop(one);
        other.take(PIECE_BYTES / VALUE_BYTES).unwrap();
    }
}
