//! A script as a source: each round waits for a run slot, runs the script, and reports its readings
//! and its state.

use std::{os::fd::AsFd, process::Command, sync::Arc};

use granary_agent_kit::{FinishedProgram, Readings, Source, SourceError, Stopwatch, run_program};

use crate::{
    output,
    settings::{OutputFormat, Script},
    slots::{RunSlot, RunSlots},
};

/// The maximum length of standard error in a problem.
const STDERR_CHARS_MAX: usize = 200;

/// A script of an agent.
#[derive(Debug)]
pub(crate) struct ScriptSource {
    script: Script,
    /// The tags of the script's series.
    tags: Vec<(String, String)>,
    run_slots: Arc<RunSlots>,
}

impl ScriptSource {
    pub(crate) fn new(script: Script, agent: &str, run_slots: Arc<RunSlots>) -> Self {
        let default_tags = [("host", agent), ("script", script.name.as_str())];
        let default_tags = default_tags.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let additional_tags = script.tags.clone();
        let tags = default_tags
            .into_iter()
            .filter(|(name, _)| !script.tags.contains_key(name))
            .chain(additional_tags);
        let tags = tags.collect();
        Self { script, tags, run_slots }
    }

    /// Runs the script and returns the readings in its output.
    fn run(&self, now_ms: i64, slot: &RunSlot<'_>) -> Result<Readings, String> {
        let Script { command, timeout, output_max, format, .. } = &self.script;
        let (program, arguments) = command.split_first().ok_or("the command is empty")?;
        let mut command = Command::new(program);
        let end = Some(slot.end().as_fd());
        let finished = run_program(command.args(arguments), *timeout, *output_max, end)?;
        let mut readings = Readings::new(self.tags.clone());
        if *format == OutputFormat::Nagios {
            let code = finished.status.code().ok_or_else(|| describe_failure(&finished))?;
            output::nagios(&finished.output, code, &mut readings)
                .map_err(|_| describe_failure(&finished))?;
            return Ok(readings);
        }
        if !finished.status.success() {
            return Err(describe_failure(&finished));
        }
        output::parse_output(&finished.output, *format, now_ms, &mut readings)?;
        Ok(readings)
    }
}

fn describe_failure(finished: &FinishedProgram) -> String {
    let errors = String::from_utf8_lossy(&finished.errors);
    let stderr: String = errors.trim().chars().take(STDERR_CHARS_MAX).collect();
    format!("{}: {stderr:?}", finished.status)
}

impl Source for ScriptSource {
    fn name(&self) -> &'static str {
        "exec"
    }

    fn sample(&mut self, now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        // Run slots are only refused while the agent stops.
        let Some(slot) = self.run_slots.acquire() else { return Ok(()) };
        let watch = Stopwatch::start();
        let outcome = self.run(now_ms, &slot);
        let duration = watch.elapsed();
        drop(slot);
        let mut own_readings = Readings::new(self.tags.clone());
        own_readings.gauge("exec_up", "", &[], f64::from(u8::from(outcome.is_ok())));
        own_readings.gauge("exec_duration", "seconds", &[], duration.as_secs_f64());
        match outcome {
            Ok(output_readings) => own_readings.append(output_readings),
            Err(cause) => own_readings.problem(format!("script {}", self.script.name), cause),
        }
        readings.append(own_readings);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, fs, time::Duration};

    use super::*;
    use crate::{Settings, source};

    fn script(name: &str, text: &str, format: OutputFormat) -> Script {
        Script {
            name: name.to_owned(),
            command: ["sh", "-c", text].map(str::to_owned).to_vec(),
            format,
            interval: None,
            timeout: Duration::from_secs(20),
            output_max: 1000,
            tags: BTreeMap::from([("env".to_owned(), "e".to_owned())]),
        }
    }

    /// Returns the values by metric and tags, and the problems.
    fn sample_round(
        scripts: Vec<Script>,
        concurrency: usize,
    ) -> (BTreeMap<String, f64>, Vec<String>) {
        let mut exec_source =
            source(&Settings { concurrency, scripts }, "web1", Duration::from_secs(1)).unwrap();
        let mut readings = Readings::default();
        exec_source.sample_alone(10_000, &mut readings).unwrap();
        let entry = |reading: &granary_agent_kit::Reading| {
            let tags: Vec<_> = reading.tags.iter().map(|(k, v)| format!("{k}={v}")).collect();
            (format!("{}{{{}}}", reading.metric, tags.join(",")), reading.value)
        };
        let problems =
            readings.problems().iter().map(|(object, cause)| format!("{object}: {cause}"));
        (readings.as_slice().iter().map(entry).collect(), problems.collect())
    }

    #[test]
    fn each_output_is_parsed_in_its_format_and_a_failing_script_does_not_stop_others() {
        let (values, problems) = sample_round(
            vec![
                script("om", "printf 'a_total{x=\"y\"} 3\\n# EOF\\n'", OutputFormat::OpenMetrics),
                script("cut", "echo 'a 3'", OutputFormat::OpenMetrics),
                script("bad", "echo no such disk >&2; exit 2", OutputFormat::Prometheus),
                script("disk", "echo 'DISK WARNING | /=2643MB;5948'; exit 1", OutputFormat::Nagios),
                script("gone", "kill -9 $$", OutputFormat::Nagios),
            ],
            2,
        );
        assert_eq!(values["a_total{env=e,host=web1,script=om,x=y}"], 3.0);
        assert_eq!(values["nagios_state{env=e,host=web1,script=disk}"], 1.0);
        for (name, up) in [("om", 1.0), ("cut", 0.0), ("bad", 0.0), ("disk", 1.0), ("gone", 0.0)] {
            assert_eq!(values[&format!("exec_up{{env=e,host=web1,script={name}}}")], up, "{name}");
        }
        assert_eq!(problems.len(), 3, "{problems:?}");
        assert!(
            problems[0].contains("no such disk") && problems[0].contains("script bad"),
            "{problems:?}"
        );
        assert!(problems[1].contains("# EOF"), "{problems:?}");
    }

    #[test]
    fn concurrency_is_limited() {
        let folder = tempfile::tempdir().unwrap();
        let text = format!("cd {}; mkdir own && rmdir own && echo 'ok 1'", folder.path().display());
        let exclusive = |index: usize| script(&index.to_string(), &text, OutputFormat::Prometheus);
        let (values, problems) = sample_round((0..8).map(exclusive).collect(), 1);
        assert_eq!(problems, Vec::<String>::new(), "two scripts ran at the same time");
        assert_eq!(values.iter().filter(|(name, _)| name.starts_with("ok")).count(), 8);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
