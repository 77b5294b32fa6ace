//! What an agent is to collect, and who says so.
//!
//! Must never know: when it is asked for, and what is done with it.

use crate::{Source, SourceError, sampling::relabel::Rule};

/// What an agent collects.
#[derive(Default)]
pub struct Plan {
    /// What is sampled. Of a source that goes on as it is, its name.
    pub sources: Vec<Planned>,
    /// What is done with series before they are spooled.
    pub rules: Vec<Rule>,
}

/// A source of a plan.
pub enum Planned {
    /// One that begins. It is started when those that end have ended: it may need what they hold.
    New(Box<dyn FnOnce() -> Result<Box<dyn Source>, SourceError>>),
    /// The one of this name, as it is running.
    Running(&'static str),
}

/// Says what is to be collected, when an agent starts and when it is told to look again (SIGHUP).
pub trait Planner {
    /// The plan; `running` are the names of the sources that run. An error changes nothing.
    ///
    /// # Errors
    /// What is wrong with the settings, and where.
    fn plan(&mut self, running: &[&str]) -> Result<Plan, String>;
}
