//! The limits of one expansion of a template: time, and bytes of the values that its functions
//! return.
//!
//! Every function, every iteration of a loop and every invoked template checks the limits first.
//! Must never know: what is expanded.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use gotmpl::{FuncMap, Value};

use super::fault;
use crate::clock::Stopwatch;

/// The time limit of one expansion, without its queries.
const EXPANSION_TIME_MAX: Duration = Duration::from_secs(2);
/// The time limit of all expansions of one evaluation, without their queries.
const EVALUATION_TIME_MAX: Duration = Duration::from_secs(10);
/// The time limit of all queries of the templates of one evaluation.
const QUERIES_TIME_MAX: Duration = Duration::from_secs(30);
/// The maximum size of one value, in bytes.
pub(super) const VALUE_BYTES_MAX: usize = 256 << 10;
/// The maximum size of all values that the functions of one expansion return, in bytes.
const MADE_BYTES_MAX: usize = 32 << 20;
/// The maximum size of the text of a list or map that a function makes from its arguments, in
/// bytes.
const NESTED_BYTES_MAX: usize = 8 << 20;
/// The maximum nesting depth of these lists and maps.
const NESTED_DEPTH_MAX: usize = 32;
/// The approximate size of an entry of a list or a map.
const ENTRY_BYTES: usize = 64;

/// The time that the templates of one evaluation have used together. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct TemplateTime(Arc<SpentTime>);

/// The used time, in microseconds.
#[derive(Debug, Default)]
struct SpentTime {
    expanding: AtomicU64,
    querying: AtomicU64,
}

/// The remaining limits of one expansion.
#[derive(Debug)]
pub(super) struct Allowance {
    time: TemplateTime,
    watch: Stopwatch,
    time_max: Duration,
    /// The time of this expansion's queries, in microseconds.
    querying: AtomicU64,
    /// The bytes of all values so far.
    made: AtomicUsize,
}

impl Allowance {
    /// Returns the limits of another expansion in an evaluation that has already used some time.
    pub(super) fn new(time: &TemplateTime) -> Arc<Self> {
        let time_left = EVALUATION_TIME_MAX.saturating_sub(spent(&time.0.expanding));
        Arc::new(Self {
            time: time.clone(),
            watch: Stopwatch::start(),
            time_max: EXPANSION_TIME_MAX.min(time_left),
            querying: AtomicU64::new(0),
            made: AtomicUsize::new(0),
        })
    }

    /// Returns the time of the expansion without its queries.
    fn expansion_time(&self) -> Duration {
        self.watch.elapsed().saturating_sub(spent(&self.querying))
    }

    /// Checks that the time limit is not exceeded.
    pub(super) fn check(&self) -> gotmpl::Result<()> {
        if self.expansion_time() < self.time_max {
            return Ok(());
        }
        Err(fault(format!(
            "the template takes longer than {EXPANSION_TIME_MAX:?}, or all templates of the \
             evaluation take longer than {EVALUATION_TIME_MAX:?}: simplify the template"
        )))
    }

    /// Counts the bytes of a value and checks the limit.
    pub(super) fn spend(&self, bytes: usize) -> gotmpl::Result<()> {
        let total = self.made.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if total <= MADE_BYTES_MAX {
            return Ok(());
        }
        Err(fault(format!(
            "the template's functions return more than {MADE_BYTES_MAX} bytes: simplify it"
        )))
    }

    /// Runs a query, whose time is counted separately.
    pub(super) fn querying<T>(&self, query: impl FnOnce() -> T) -> gotmpl::Result<T> {
        if spent(&self.time.0.querying) >= QUERIES_TIME_MAX {
            let fault_text = format!(
                "the queries of the evaluation's templates take longer than {QUERIES_TIME_MAX:?}"
            );
            return Err(fault(fault_text));
        }
        let watch = Stopwatch::start();
        let answered = query();
        let micros = watch.elapsed().as_micros() as u64;
        self.querying.fetch_add(micros, Ordering::Relaxed);
        self.time.0.querying.fetch_add(micros, Ordering::Relaxed);
        Ok(answered)
    }

    /// Wraps the functions: each checks the limits before it runs and counts its result.
    pub(super) fn with_limits(self: &Arc<Self>, functions: FuncMap) -> FuncMap {
        let bound = |(name, function): (String, gotmpl::ValueFunc)| {
            let allowance = self.clone();
            let limited: gotmpl::ValueFunc = Arc::new(move |args| {
                allowance.check()?;
                let value = function(args)?;
                allowance.spend(bytes(&value))?;
                Ok(value)
            });
            (name, limited)
        };
        functions.into_iter().map(bound).collect()
    }
}

impl Drop for Allowance {
    fn drop(&mut self) {
        let micros = self.expansion_time().as_micros() as u64;
        self.time.0.expanding.fetch_add(micros, Ordering::Relaxed);
    }
}

fn spent(micros: &AtomicU64) -> Duration {
    Duration::from_micros(micros.load(Ordering::Relaxed))
}

/// Returns the bytes of a value itself; the values in a list or a map were counted before.
fn bytes(value: &Value) -> usize {
    match value {
        Value::String(text) | Value::Safe { s: text, .. } => text.len(),
        Value::List(list) => list.len() * ENTRY_BYTES,
        Value::Map(map) => map.len() * ENTRY_BYTES,
        Value::Nil
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Uint(_)
        | Value::Float(_)
        | Value::Function(_) => 0,
    }
}

/// Returns the bytes of a value's text, in which shared values count each time; `None` when they
/// exceed `most` or the value is nested too deeply.
pub(super) fn shown_bytes(value: &Value, most: usize) -> Option<usize> {
    fn add(value: &Value, depth: usize, left: &mut usize) -> Option<()> {
        *left = left.checked_sub(ENTRY_BYTES / 2)?;
        let deeper = depth.checked_sub(1)?;
        match value {
            Value::String(text) | Value::Safe { s: text, .. } => {
                *left = left.checked_sub(text.len())?;
            }
            Value::List(list) => list.iter().try_for_each(|value| add(value, deeper, left))?,
            Value::Map(map) => map.iter().try_for_each(|(name, value)| {
                *left = left.checked_sub(name.len())?;
                add(value, deeper, left)
            })?,
            // A number has at most as many digits as the largest number.
            Value::Float(_) => *left = left.checked_sub(330)?,
            Value::Nil | Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Function(_) => {}
        }
        Some(())
    }
    let mut bytes_left = most;
    // The data of a template adds a few levels.
    add(value, NESTED_DEPTH_MAX + 8, &mut bytes_left)?;
    Some(most - bytes_left)
}

/// Checks that a list or a map that a function makes from its arguments is within the limits.
pub(super) fn check_nested(made: &Value) -> gotmpl::Result<()> {
    match shown_bytes(made, NESTED_BYTES_MAX) {
        Some(_) => Ok(()),
        None => Err(fault(format!(
            "lists are larger than {NESTED_BYTES_MAX} bytes or nested deeper than {NESTED_DEPTH_MAX}"
        ))),
    }
}
