//! Runs scripts and Nagios plugins, each at its own interval, and makes readings of what they print.
//!
//! `run` starts a program within its bounds, `output` reads what it printed, in one file a format,
//! `script` joins both, `turns` bounds how many run at once. Must never know: how readings are
//! delivered.

mod output;
mod run;
mod script;
mod settings;
mod turns;

use std::{io, sync::Arc, time::Duration};

use granary_agent_kit::{SideBySide, Source};

pub use self::{
    output::fuzz,
    settings::{Form, Script, Settings},
};
use self::{script::Running, turns::Turns};

/// For so long a round waits for quick scripts; what the others print comes with a later round.
const DEADLINE: Duration = Duration::from_millis(100);

/// The scripts as one source; `agent` is the value of the tag `host`, and those without an interval
/// of their own run as often as `interval`.
///
/// # Errors
/// When the system gives no thread.
pub fn source(settings: &Settings, agent: &str, interval: Duration) -> io::Result<SideBySide> {
    let turns = Arc::new(Turns::new(settings.concurrency));
    let of_script = |script: &Script| -> (Duration, Box<dyn Source + Send>) {
        let running = Running::new(script.clone(), agent, Arc::clone(&turns));
        (script.interval.unwrap_or(interval), Box::new(running))
    };
    SideBySide::each_at("exec", DEADLINE, settings.scripts.iter().map(of_script).collect())
}
