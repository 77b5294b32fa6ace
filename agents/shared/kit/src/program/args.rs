//! The flags that all agents share.

use std::{env, fs, net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};
use granary_https::HttpsArgs;

/// The maximum of `--linger` and `--spool-linger`.
const LINGER_MAX: Duration = Duration::from_secs(300);
const INTERVAL_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The flags that all agents share; each agent flattens them into its own flags.
#[derive(Debug, Clone, Args)]
pub struct AgentArgs {
    /// URL of the daemon. With several URLs, separated by commas, the agent uses the next one when
    /// a daemon does not answer.
    #[arg(long, env = "GRANARY_URL", default_value = "http://127.0.0.1:7117", value_delimiter = ',', value_parser = parse_url)]
    pub url: Vec<String>,

    /// Additional daemon that receives all samples, from a spool of its own; can be repeated.
    #[arg(long, value_name = "URL", value_parser = parse_url)]
    pub also: Vec<String>,

    /// The options of https.
    #[command(flatten)]
    pub https: HttpsArgs,

    /// File with the key of the daemon, sent as `Authorization: Bearer`; the agent reads it for
    /// each request (default: the key in `GRANARY_KEY`, if it is set).
    #[arg(long, visible_alias = "key-file", value_name = "FILE", env = "GRANARY_KEY_FILE")]
    pub token_file: Option<PathBuf>,

    /// Name of this agent, unique in the fleet (default: the host's name).
    #[arg(long, value_name = "NAME")]
    pub agent_id: Option<String>,

    /// Sampling interval, such as 10s or 1m; the agent samples at multiples of it.
    #[arg(long, default_value = "10s", value_parser = parse_interval)]
    pub interval: Duration,

    /// Delay before sending, so that several rounds share a request: fewer bytes, later data.
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = parse_linger)]
    pub linger: Duration,

    /// Folder of the spool, which holds undelivered samples (default: `$STATE_DIRECTORY`, else
    /// `$XDG_STATE_HOME/granary-agent-<NAME>`, else `~/.local/state/granary-agent-<NAME>`).
    #[arg(long, value_name = "FOLDER")]
    pub spool_dir: Option<PathBuf>,

    /// Maximum size of undelivered batches in bytes; when it is exceeded, the oldest are dropped.
    /// The file can take up to about twice this size.
    #[arg(long, value_name = "BYTES", default_value_t = 256 * 1024 * 1024)]
    pub spool_max_bytes: u64,

    /// Maximum age of undelivered batches; older ones are dropped.
    #[arg(long, value_name = "TIME", value_parser = parse_age)]
    pub spool_max_age: Option<Duration>,

    /// Address at which the agent serves its own metrics, such as 127.0.0.1:7118.
    #[arg(long, value_name = "ADDR")]
    pub metrics_listen: Option<SocketAddr>,

    /// Clock that provides the times of samples. When the host's clock differs from the daemon's by
    /// a minute or more, samples are held until it is right, and then sent with corrected times.
    #[arg(long, value_enum, default_value_t = ClockOf::Host)]
    pub clock: ClockOf,

    /// Time for which undelivered rounds may stay in memory only, up to 5m; 0s writes each round at
    /// once. After a failed delivery, all rounds are written. A power cut loses the rounds in
    /// memory.
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = parse_linger)]
    pub spool_linger: Duration,

    /// Tag that is added to each series; can be repeated.
    #[arg(long = "tag", value_name = "KEY=VALUE", value_parser = parse_tag)]
    pub tags: Vec<(String, String)>,

    /// Number of rounds after which the agent delivers and exits (default: run until SIGTERM or
    /// SIGINT).
    #[arg(long, value_name = "N")]
    pub rounds: Option<u64>,

    /// Sample once and print the readings as a table, without sending them.
    #[arg(long)]
    pub print: bool,

    /// JSON file with the agent's totals, rewritten after each acknowledged request.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,

    /// Log format on standard error; `RUST_LOG` sets the level.
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
}

/// The clock that provides the times of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum ClockOf {
    /// This host's clock; while it is wrong, samples are held.
    #[default]
    Host,
    /// The daemon's clock; times are corrected by the difference to this host's clock.
    Daemon,
}

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object per line.
    Json,
}

impl AgentArgs {
    /// Returns the agent's name: `--agent-id`, or else the host's name.
    pub fn agent_name(&self) -> String {
        self.agent_id.clone().filter(|id| !id.is_empty()).unwrap_or_else(|| {
            fs::read_to_string("/proc/sys/kernel/hostname")
                .map(|name| name.trim().to_owned())
                .ok()
                .filter(|name| !name.is_empty())
                .unwrap_or_else(|| "localhost".to_owned())
        })
    }

    /// Returns the spool folder of the agent program with this name.
    pub(crate) fn spool_folder(&self, program: &str) -> PathBuf {
        self.spool_dir
            .clone()
            .unwrap_or_else(|| default_spool_folder(program, |name| env::var(name).ok()))
    }
}

fn default_spool_folder(program: &str, var: impl Fn(&str) -> Option<String>) -> PathBuf {
    let var = |name| var(name).filter(|value| !value.is_empty());
    let name = format!("granary-agent-{program}");
    if let Some(folder) = var("STATE_DIRECTORY") {
        // systemd joins several folders with colons; the agent uses the first folder.
        let first = folder.split(':').next().unwrap_or_default();
        return PathBuf::from(first);
    }
    if let Some(folder) = var("XDG_STATE_HOME") {
        return PathBuf::from(folder).join(name);
    }
    PathBuf::from(var("HOME").unwrap_or_else(|| "/var/lib".to_owned()))
        .join(".local/state")
        .join(name)
}

/// Checks the address of a daemon, and removes a trailing slash.
///
/// # Errors
/// The address has another scheme.
pub fn parse_url(text: &str) -> Result<String, String> {
    if !text.starts_with("http://") && !text.starts_with("https://") {
        return Err("must begin with http:// or https://".to_owned());
    }
    Ok(text.trim_end_matches('/').to_owned())
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    let interval =
        humantime::parse_duration(text).map_err(|cause| format!("{cause}; use 10s or 1m"))?;
    if interval < Duration::from_millis(100) || interval > INTERVAL_MAX {
        return Err("must be 100ms to 24h".to_owned());
    }
    Ok(interval)
}

fn parse_linger(text: &str) -> Result<Duration, String> {
    let span = humantime::parse_duration(text).map_err(|cause| format!("{cause}; use 20s"))?;
    if span > LINGER_MAX { Err("must be up to 5m".to_owned()) } else { Ok(span) }
}

fn parse_age(text: &str) -> Result<Duration, String> {
    let age = humantime::parse_duration(text).map_err(|cause| format!("{cause}; use 12h or 7d"))?;
    if age < Duration::from_secs(1) { Err("must be 1s or more".to_owned()) } else { Ok(age) }
}

fn parse_tag(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() && !value.is_empty() => {
            Ok((key.to_owned(), value.to_owned()))
        }
        _ => Err("must be KEY=VALUE, such as env=prod".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spool_folder_follows_systemd_then_xdg_then_home() {
        let check = |vars: &[(&str, &str)], expected: &str| {
            let var = |name: &str| {
                vars.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            };
            assert_eq!(default_spool_folder("host", var), PathBuf::from(expected));
        };
        let all = [("STATE_DIRECTORY", "/var/lib/x:/y"), ("XDG_STATE_HOME", "/s"), ("HOME", "/h")];
        check(&all, "/var/lib/x");
        check(&all[1..], "/s/granary-agent-host");
        check(&all[2..], "/h/.local/state/granary-agent-host");
        check(&[("XDG_STATE_HOME", ""), ("HOME", "/h")], "/h/.local/state/granary-agent-host");
    }

    #[test]
    fn values_are_checked_when_they_are_parsed() {
        assert_eq!(parse_interval("1m 30s"), Ok(Duration::from_secs(90)));
        assert!(parse_interval("0s").is_err());
        assert!(parse_interval("10").is_err());
        assert_eq!(parse_tag("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert!(parse_tag("a=").is_err());
        assert_eq!(parse_url("http://x:1/"), Ok("http://x:1".to_owned()));
        assert_eq!(parse_url("https://x/"), Ok("https://x".to_owned()));
        assert!(parse_url("ftp://x").is_err());
        assert_eq!(parse_age("7d"), Ok(Duration::from_secs(7 * 86_400)));
        assert!(parse_age("0s").is_err());
        assert_eq!(parse_linger("0s"), Ok(Duration::ZERO));
        assert!(parse_linger("6m").is_err());
    }
}
