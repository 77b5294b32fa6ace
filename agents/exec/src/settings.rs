//! The settings of scripts: programs, intervals and limits.

use std::{collections::BTreeMap, time::Duration};

use granary_agent_kit::{some_span, span};
use serde::Deserialize;

/// The maximum number of scripts of an agent.
const SCRIPTS_MAX: usize = 500;
const TIMEOUT_MAX: Duration = Duration::from_secs(600);
/// The maximum of `output_max`.
const OUTPUT_MAX: usize = 64 << 20;
const CONCURRENCY_MAX: usize = 64;

/// The settings of all scripts.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The maximum number of concurrent scripts.
    #[serde(default = "concurrency")]
    pub concurrency: usize,
    /// The scripts.
    #[serde(rename = "script")]
    pub scripts: Vec<Script>,
}

/// The settings of a script.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The value of the tag `script` of the series.
    pub name: String,
    /// The program and its arguments, executed without a shell.
    pub command: Vec<String>,
    /// The format of the output.
    pub format: OutputFormat,
    /// The interval (default: the agent's interval).
    #[serde(default, deserialize_with = "some_span")]
    pub interval: Option<Duration>,
    /// The time after which the script is killed.
    #[serde(default = "timeout", deserialize_with = "span")]
    pub timeout: Duration,
    /// The output size beyond which the script is killed.
    #[serde(default = "output_max")]
    pub output_max: usize,
    /// Additional tags of the script's series.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
}

/// The format of a script's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputFormat {
    /// The text format of Prometheus.
    Prometheus,
    /// OpenMetrics, which ends with `# EOF`.
    OpenMetrics,
    /// InfluxDB line protocol.
    Influx,
    /// A line for people, with performance data after a vertical bar; the exit code is the state.
    Nagios,
}

fn concurrency() -> usize {
    4
}

fn timeout() -> Duration {
    Duration::from_secs(10)
}

fn output_max() -> usize {
    1 << 20
}

impl Settings {
    /// Checks the values.
    ///
    /// # Errors
    /// The first error, with the script's name.
    pub fn check(&self) -> Result<(), String> {
        if !(1..=CONCURRENCY_MAX).contains(&self.concurrency) {
            return Err(format!("concurrency must be 1 to {CONCURRENCY_MAX}"));
        }
        if self.scripts.len() > SCRIPTS_MAX {
            return Err(format!("more than {SCRIPTS_MAX} scripts"));
        }
        for (index, script) in self.scripts.iter().enumerate() {
            let fault = |problem: String| Err(format!("script {:?}: {problem}", script.name));
            if script.name.is_empty() {
                return Err(format!("script {}: the name is missing", index + 1));
            }
            if self.scripts.iter().take(index).any(|other| other.name == script.name) {
                return fault("two scripts have this name".to_owned());
            }
            if script.command.first().is_none_or(String::is_empty) {
                return fault("command must name a program".to_owned());
            }
            if script.timeout.is_zero() || script.timeout > TIMEOUT_MAX {
                return fault(format!("timeout must be more than 0s and at most {TIMEOUT_MAX:?}"));
            }
            if !(1..=OUTPUT_MAX).contains(&script.output_max) {
                return fault(format!("output_max must be 1 to {OUTPUT_MAX}"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_script() {
        let with_lines = |more: &str| {
            format!("[[script]]\nname = 'a'\ncommand = ['true']\nformat = 'nagios'\n{more}\n")
        };
        let check = |text: String, expected: &str| {
            let parsed: Result<Settings, _> = toml::from_str(&text);
            let outcome =
                parsed.map_err(|cause| cause.to_string()).and_then(|scripts| scripts.check());
            let fault = outcome.unwrap_err();
            assert!(fault.contains(expected), "{expected:?} is not in: {fault}");
        };
        assert_eq!(toml::from_str::<Settings>(&with_lines("")).unwrap().check(), Ok(()));
        check(with_lines("timeout = '0s'"), "\"a\": timeout");
        check(with_lines("timeout = 'soon'"), "use 10s");
        check(with_lines("output_max = 0"), "output_max");
        check(with_lines("comand = 1"), "comand");
        check(
            with_lines("[[script]]\nname = 'b'\ncommand = []\nformat = 'influx'"),
            "\"b\": command",
        );
        check(with_lines(&with_lines("")), "two scripts have this name");
        check(format!("concurrency = 0\n{}", with_lines("")), "concurrency");
        check(with_lines("").replace("nagios", "yaml"), "yaml");
    }
}
