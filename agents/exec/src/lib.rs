//! Runs scripts and Nagios plugins, each at its own interval, and converts their output to
//! readings.
//!
//! `output` parses the output of a script, with one file per format, `script` runs it, and `slots`
//! limits concurrency. Must never know: how readings are delivered.

mod output;
mod script;
mod settings;
mod slots;

use std::{io, sync::Arc, thread, time::Duration};

use granary_agent_kit::{ROUND_DEADLINE, Readings, SideBySide, Source, SourceError};
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    iterator::{Handle, Signals},
    low_level::emulate_default_handler,
};

pub use self::{
    output::fuzz,
    settings::{OutputFormat, Script, Settings},
};
use self::{script::ScriptSource, slots::RunSlots};

/// The time to wait for running scripts when the agent ends or its settings change.
const END_DEADLINE: Duration = Duration::from_secs(2);

/// Returns the scripts as one source. `agent` is the value of the tag `host`; `interval` is the
/// default interval of scripts.
///
/// # Errors
/// The system refuses a pipe or a thread.
pub fn source(settings: &Settings, agent: &str, interval: Duration) -> io::Result<Exec> {
    let slots = Arc::new(RunSlots::new(settings.concurrency)?);
    let script_source = |script: &Script| -> (Duration, Box<dyn Source + Send>) {
        let source = ScriptSource::new(script.clone(), agent, Arc::clone(&slots));
        (script.interval.unwrap_or(interval), Box::new(source))
    };
    let scripts = settings.scripts.iter().map(script_source).collect();
    let scripts = SideBySide::with_intervals("exec", ROUND_DEADLINE, scripts)?;
    Ok(Exec { scripts, slots })
}

/// The scripts, which are killed when this value is dropped.
#[derive(Debug)]
pub struct Exec {
    scripts: SideBySide,
    slots: Arc<RunSlots>,
}

impl Source for Exec {
    fn name(&self) -> &'static str {
        self.scripts.name()
    }

    fn sample(&mut self, now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        self.scripts.sample(now_ms, readings)
    }

    fn sample_alone(&mut self, now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        let signal_handle = end_scripts_at_signals(&self.slots)?;
        let outcome = self.scripts.sample_alone(now_ms, readings);
        signal_handle.close();
        outcome
    }
}

/// Kills running scripts before SIGINT or SIGTERM ends the process, until the caller closes the
/// handle. Only a single round needs this.
fn end_scripts_at_signals(slots: &Arc<RunSlots>) -> io::Result<Handle> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let (handle, slots) = (signals.handle(), Arc::clone(slots));
    thread::Builder::new().name("exec-signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            let _has_ended = slots.end_all(END_DEADLINE);
            // This call fails only for unknown signals.
            let _outcome = emulate_default_handler(signal);
        }
    })?;
    Ok(handle)
}

impl Drop for Exec {
    fn drop(&mut self) {
        // A script that takes longer is killed by its thread, as long as the agent runs.
        let _has_ended = self.slots.end_all(END_DEADLINE);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use granary_agent_kit::Stopwatch;

    use super::*;

    #[test]
    fn scripts_end_with_their_source_and_no_script_starts_afterwards() {
        let folder = tempfile::tempdir().unwrap();
        let pid_file = folder.path().join("pid");
        let marker = folder.path().join("later");
        let script = |name: &str, text: String| {
            let command = ["sh", "-c", text.as_str()];
            format!("[[script]]\nname = '{name}'\ncommand = {command:?}\nformat = 'nagios'\n")
        };
        let long_script =
            script("long", format!("echo $$ > {}; exec sleep 1000", pid_file.display()));
        let waiting = script("waits", format!("touch {}", marker.display()));
        let text =
            format!("concurrency = 1\n{long_script}timeout = '600s'\n{waiting}interval = '2s'\n");
        let settings = toml::from_str(&text).unwrap();
        let mut exec = source(&settings, "web1", Duration::from_secs(1)).unwrap();
        exec.sample(1000, &mut Readings::default()).unwrap();
        let watch = Stopwatch::start();
        let pid = loop {
            let pid = fs::read_to_string(&pid_file).unwrap_or_default();
            if pid.ends_with('\n') {
                break pid;
            }
            assert!(!watch.left_of(Duration::from_secs(30)).is_zero());
            std::thread::yield_now();
        };
        exec.sample(2000, &mut Readings::default()).unwrap();
        let slots = Arc::clone(&exec.slots);
        drop(exec);
        assert!(
            !fs::exists(format!("/proc/{}", pid.trim())).unwrap(),
            "process {pid} still exists"
        );
        assert!(
            slots.acquire().is_none() && slots.end_all(Duration::ZERO),
            "a script may start after the end"
        );
        assert!(!marker.exists(), "a script started after the end");
    }
}
