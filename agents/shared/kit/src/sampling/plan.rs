//! The plan of an agent: its sources and rules.
//!
//! Must never know: when a plan is requested, and how it is executed.

use crate::{Source, SourceError, sampling::relabel::Rule};

/// The sources and rules of an agent.
#[derive(Default)]
pub struct Plan {
    /// The sources.
    pub sources: Vec<PlannedSource>,
    /// The rules that apply to series before they are spooled.
    pub rules: Vec<Rule>,
}

/// A source of a plan.
pub enum PlannedSource {
    /// A new source. It starts after the old sources have ended, because it may need a resource of
    /// an old source, such as a port.
    New(Box<dyn FnOnce() -> Result<Box<dyn Source>, SourceError>>),
    /// The running source with this name, unchanged.
    Running(&'static str),
}

/// The planner of an agent, which creates a plan at the start and at SIGHUP.
pub trait Planner {
    /// Creates a plan; `running` contains the names of the running sources. After an error, the
    /// current plan continues.
    ///
    /// # Errors
    /// The fault in the settings, with its location.
    fn plan(&mut self, running: &[&str]) -> Result<Plan, String>;
}
