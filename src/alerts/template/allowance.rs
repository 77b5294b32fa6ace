//! What one expansion of a template may take: time, and bytes of the values that its functions make.
//!
//! Every function of a template, and every turn of a loop or of a template that is invoked, asks
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

/// The time of one expansion, without that of the queries that it asks.
const EXPANSION_TIME_MAX: Duration = Duration::from_secs(2);
/// The time of all expansions of one evaluation, without their queries.
const EVALUATION_TIME_MAX: Duration = Duration::from_secs(10);
/// The time of all queries that the templates of one evaluation ask.
const QUERIES_TIME_MAX: Duration = Duration::from_secs(30);
/// Bytes of one value.
pub(super) const VALUE_BYTES_MAX: usize = 256 << 10;
/// Bytes of all values that the functions of one expansion make.
const MADE_BYTES_MAX: usize = 32 << 20;
/// Bytes that lists and maps made of arguments are when they are shown.
const NESTED_BYTES_MAX: usize = 8 << 20;
/// How deep such lists and maps are nested.
const NESTED_DEPTH_MAX: usize = 32;
/// What a place in a list or a map takes, about.
const PLACE_BYTES: usize = 64;

/// The time that the templates of one evaluation have taken together. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct TemplateTime(Arc<Spent>);

/// In microseconds.
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
    /// Microseconds that the queries of this expansion took.
    asked: AtomicU64,
    made: AtomicUsize,
}

impl Allowance {
    /// What one more expansion may take, beside those that have taken this time.
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

    /// The time that it has taken, without its queries.
    fn own_time(&self) -> Duration {
        self.watch.elapsed().saturating_sub(spent(&self.asked))
    }

    /// Goes on, or says that the time is over.
    pub(super) fn check(&self) -> gotmpl::Result<()> {
        if self.own_time() < self.time_max {
            return Ok(());
        }
        Err(fault(format!(
            "it takes longer than {EXPANSION_TIME_MAX:?}, or all templates of its evaluation longer \
             than {EVALUATION_TIME_MAX:?}: let it do less"
        )))
    }

    /// Takes what a value needs.
    pub(super) fn take(&self, bytes: usize) -> gotmpl::Result<()> {
        let made = self.made.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if made <= MADE_BYTES_MAX {
            return Ok(());
        }
        Err(fault(format!("its functions make more than {MADE_BYTES_MAX} bytes: let it do less")))
    }

    /// Runs a query, whose time counts apart.
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

    /// The functions, each of which asks before it runs, and takes what it makes.
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

/// What a value itself takes, without those that it shares with others.
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

/// The bytes of a value when it is shown, each time that it is in there: up to `most`, and `None`
/// beyond that or when it is nested deeper than it may be.
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
            // A number may have as many digits as the largest has.
            Value::Float(_) => *left = left.checked_sub(330)?,
            Value::Nil | Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Function(_) => {}
        }
        Some(())
    }
    let mut left = most;
    // Data has levels of its own.
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
