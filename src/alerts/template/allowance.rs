//! The limits of one expansion of a template: time, and bytes of the values that its functions
//! make.
//!
//! Every function of a template, every iteration of a loop and every template call checks the limits
//! first. Must never know: what is expanded.

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

/// The maximum time of one expansion, without its queries.
const EXPANSION_TIME_MAX: Duration = Duration::from_secs(2);
/// The maximum time of all expansions of one evaluation, without their queries.
const EVALUATION_TIME_MAX: Duration = Duration::from_secs(10);
/// The maximum time of all queries of the templates of one evaluation.
const QUERIES_TIME_MAX: Duration = Duration::from_secs(30);
/// The maximum size of one value, in bytes.
pub(super) const VALUE_BYTES_MAX: usize = 256 << 10;
/// The maximum size of all values that the functions of one expansion make, in bytes.
const MADE_BYTES_MAX: usize = 32 << 20;
/// The maximum size, as text, of lists and maps that are made of arguments.
const NESTED_BYTES_MAX: usize = 8 << 20;
/// The maximum depth of nested lists and maps.
const NESTED_DEPTH_MAX: usize = 32;
/// The approximate size of an element of a list or a map.
const PLACE_BYTES: usize = 64;

/// The time that the templates of one evaluation have used. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct TemplateTime(Arc<Spent>);

/// The time spent, in microseconds.
#[derive(Debug, Default)]
struct Spent {
    own: AtomicU64,
    asked: AtomicU64,
}

/// See the file's head.
#[derive(Debug)]
pub(super) struct Allowance {
    time: TemplateTime,
    watch: Stopwatch,
    time_max: Duration,
    /// The microseconds that the queries of this expansion used.
    asked: AtomicU64,
    made: AtomicUsize,
}

impl Allowance {
    /// The allowance of one more expansion, given the time that others have spent.
    pub(super) fn new(time: &TemplateTime) -> Arc<Self> {
        let left = EVALUATION_TIME_MAX.saturating_sub(spent(&time.0.own));
        Arc::new(Self {
            time: time.clone(),
            watch: Stopwatch::start(),
            time_max: EXPANSION_TIME_MAX.min(left),
            asked: AtomicU64::new(0),
            made: AtomicUsize::new(0),
        })
    }

    /// The time that it has used, without its queries.
    fn own_time(&self) -> Duration {
        self.watch.elapsed().saturating_sub(spent(&self.asked))
    }

    /// Returns an error when the time is used up.
    pub(super) fn check(&self) -> gotmpl::Result<()> {
        if self.own_time() < self.time_max {
            return Ok(());
        }
        Err(fault(format!(
            "it takes longer than {EXPANSION_TIME_MAX:?}, or all templates of its evaluation longer \
             than {EVALUATION_TIME_MAX:?}: let it do less"
        )))
    }

    /// Reserves the bytes of a value.
    pub(super) fn take(&self, bytes: usize) -> gotmpl::Result<()> {
        let made = self.made.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if made <= MADE_BYTES_MAX {
            return Ok(());
        }
        Err(fault(format!("its functions make more than {MADE_BYTES_MAX} bytes: let it do less")))
    }

    /// Runs a query, whose time is counted separately.
    pub(super) fn asking<T>(&self, ask: impl FnOnce() -> T) -> gotmpl::Result<T> {
        if spent(&self.time.0.asked) >= QUERIES_TIME_MAX {
            let long =
                format!("the queries of its templates take longer than {QUERIES_TIME_MAX:?}");
            return Err(fault(long));
        }
        let watch = Stopwatch::start();
        let answered = ask();
        let micros = watch.elapsed().as_micros() as u64;
        self.asked.fetch_add(micros, Ordering::Relaxed);
        self.time.0.asked.fetch_add(micros, Ordering::Relaxed);
        Ok(answered)
    }

    /// Wraps the functions: each checks the time before it runs, and reserves the bytes of its
    /// result.
    pub(super) fn bound(self: &Arc<Self>, functions: FuncMap) -> FuncMap {
        let bound = |(name, function): (String, gotmpl::ValueFunc)| {
            let own = self.clone();
            let asking: gotmpl::ValueFunc = Arc::new(move |args| {
                own.check()?;
                let made = function(args)?;
                own.take(bytes(&made))?;
                Ok(made)
            });
            (name, asking)
        };
        functions.into_iter().map(bound).collect()
    }
}

impl Drop for Allowance {
    fn drop(&mut self) {
        let micros = self.own_time().as_micros() as u64;
        self.time.0.own.fetch_add(micros, Ordering::Relaxed);
    }
}

fn spent(micros: &AtomicU64) -> Duration {
    Duration::from_micros(micros.load(Ordering::Relaxed))
}

/// The size of a value itself, without shared parts.
fn bytes(value: &Value) -> usize {
    match value {
        Value::String(text) | Value::Safe { s: text, .. } => text.len(),
        Value::List(list) => list.len() * PLACE_BYTES,
        Value::Map(map) => map.len() * PLACE_BYTES,
        Value::Nil
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Uint(_)
        | Value::Float(_)
        | Value::Function(_) => 0,
    }
}

/// The size of a value as text, counting shared parts each time: up to `most`, and `None` beyond
/// that or when it is nested too deeply.
pub(super) fn shown_bytes(value: &Value, most: usize) -> Option<usize> {
    fn add(value: &Value, depth: usize, left: &mut usize) -> Option<()> {
        *left = left.checked_sub(PLACE_BYTES / 2)?;
        let deeper = depth.checked_sub(1)?;
        match value {
            Value::String(text) | Value::Safe { s: text, .. } => {
                *left = left.checked_sub(text.len())?;
            }
            Value::List(list) => list.iter().try_for_each(|own| add(own, deeper, left))?,
            Value::Map(map) => map.iter().try_for_each(|(name, own)| {
                *left = left.checked_sub(name.len())?;
                add(own, deeper, left)
            })?,
            // A number has at most as many digits as the largest one.
            Value::Float(_) => *left = left.checked_sub(330)?,
            Value::Nil | Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Function(_) => {}
        }
        Some(())
    }
    let mut left = most;
    // The data of a template is nested as well.
    add(value, NESTED_DEPTH_MAX + 8, &mut left)?;
    Some(most - left)
}

/// Checks that values may be put into a list or a map.
pub(super) fn check_nested(made: &Value) -> gotmpl::Result<()> {
    match shown_bytes(made, NESTED_BYTES_MAX) {
        Some(_) => Ok(()),
        None => Err(fault(format!(
            "lists are larger than {NESTED_BYTES_MAX} bytes or nested deeper than {NESTED_DEPTH_MAX}"
        ))),
    }
}
