//! The real daemon on a free port with a separate data directory.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::ports::free_port;

/// The time after which a test gives up.
const DEADLINE: Duration = Duration::from_secs(30);

/// A running daemon, which is killed when this value is dropped.
pub(crate) struct Daemon {
    child: Option<Child>,
    pub(crate) url: String,
    pub(crate) dir: tempfile::TempDir,
    config: Option<PathBuf>,
    /// The address and the port.
    address: String,
    agent: ureq::Agent,
}

/// The answer to a request; a body that is not JSON is a text.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

#[expect(clippy::disallowed_methods, reason = "a deadline of a test")]
fn now() -> Instant {
    Instant::now()
}

/// Granularities of hours and days with a retention of twenty years.
pub(crate) const HOURS_AND_DAYS: [[&str; 4]; 2] =
    [["1h", "1d", "1w", "1040w"], ["1d", "1mo", "1y", "20y"]];
/// Granularities of seconds and minutes.
pub(crate) const SECONDS: [[&str; 4]; 2] = [["1s", "1m", "1h", "6h"], ["1m", "1h", "6h", "48h"]];

/// Returns the settings of granularities; each has the lengths of its slots, documents and
/// partitions, and its retention.
pub(crate) fn granularities(spans: &[[&str; 4]]) -> String {
    let table = |[slot, document, partition, retention]: &[&str; 4]| {
        format!(
            "[[granularity]]\nslot = '{slot}'\ndocument = '{document}'\n\
             partition = '{partition}'\nretention = '{retention}'\n"
        )
    };
    spans.iter().map(table).collect()
}

/// Returns a client that treats no HTTP status as an error.
pub(crate) fn client() -> ureq::Agent {
    ureq::Agent::config_builder().http_status_as_error(false).build().into()
}

/// Sends a request with these headers; returns the status and the body, which is a text if it is
/// not JSON.
pub(crate) fn request(
    url: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Result<(u16, Value), ureq::Error> {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .allow_non_standard_methods(true)
        .build()
        .into();
    let request = ureq::http::Request::builder().method(method).uri(format!("{url}{path}"));
    let request =
        headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    let mut response = agent.run(request.body(body.to_owned())?)?;
    let text = response.body_mut().read_to_string()?;
    Ok((response.status().as_u16(), serde_json::from_str(&text).unwrap_or(Value::String(text))))
}

/// Returns the values of a chart's points.
pub(crate) fn numbers(points: &Value) -> Vec<Option<f64>> {
    points.as_array().unwrap().iter().map(|point| point[1].as_f64()).collect()
}

/// Returns the command `granary` without arguments.
pub(crate) fn granary() -> Command {
    Command::new(env!("CARGO_BIN_EXE_granary"))
}

/// Returns the path of an agent's program, which is built if it is missing. With the features of
/// the whole workspace, its dependencies are not compiled again.
pub(crate) fn agent_program(name: &str) -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_granary")).with_file_name(name);
    if !program.exists() {
        let build = ["build", "--locked", "--workspace", "--bin", name];
        assert!(Command::new(env!("CARGO")).args(build).status().unwrap().success());
    }
    program
}

impl Daemon {
    /// Starts a daemon whose settings override the defaults.
    pub(crate) fn start(settings: &str) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), settings)
    }

    /// Starts a daemon in this folder; the subfolder `data` is the data directory.
    pub(crate) fn start_in(dir: tempfile::TempDir, settings: &str) -> Self {
        Self::start_with(dir, settings, "http", client())
    }

    /// Starts a daemon whose settings turn TLS on, with a client that trusts its certificate.
    pub(crate) fn start_tls(dir: tempfile::TempDir, settings: &str, agent: ureq::Agent) -> Self {
        Self::start_with(dir, settings, "https", agent)
    }

    fn start_with(
        dir: tempfile::TempDir,
        settings: &str,
        scheme: &str,
        agent: ureq::Agent,
    ) -> Self {
        let mut daemon = Self::new(dir, settings, scheme, agent);
        daemon.restart();
        daemon
    }

    /// Creates a daemon that does not run yet.
    pub(crate) fn new(
        dir: tempfile::TempDir,
        settings: &str,
        scheme: &str,
        agent: ureq::Agent,
    ) -> Self {
        let config = (!settings.is_empty()).then(|| {
            let path = dir.path().join("granary.toml");
            fs::write(&path, settings).unwrap();
            path
        });
        let address = format!("127.0.0.1:{}", free_port());
        let url = format!("{scheme}://{address}");
        Self { child: None, url, dir, config, address, agent }
    }

    /// Starts the process again with the same data, and waits until it is ready.
    pub(crate) fn restart(&mut self) {
        self.spawn();
        let output = self.wait_until_ready_or_ended();
        assert_eq!(output, None, "the daemon ended");
    }

    fn has_telemetry_settings(&self) -> bool {
        let config = self.config.as_ref().map(|path| fs::read_to_string(path).unwrap());
        config.is_some_and(|text| text.contains("telemetry"))
    }

    /// Starts the process without waiting for it.
    pub(crate) fn spawn(&mut self) {
        let mut command = granary();
        command.arg("serve").arg("--data-dir").arg(self.data(""));
        command.arg("--listen").arg(&self.address);
        // Tests count series and senders, so the daemon's own samples are off unless a test sets
        // them.
        if !self.has_telemetry_settings() {
            command.env("GRANARY__TELEMETRY__INTERVAL", "");
        }
        if let Some(config) = &self.config {
            command.arg("--config").arg(config);
        }
        let log = fs::File::create(self.dir.path().join("log")).unwrap();
        self.child = Some(command.stderr(log).stdout(Stdio::null()).spawn().unwrap());
    }

    /// Waits until the process is ready or has ended. Returns the log of a process that has ended;
    /// its exit code must be a failure.
    pub(crate) fn wait_until_ready_or_ended(&mut self) -> Option<String> {
        let since = now();
        while !self.is_ready() {
            if let Some(status) = self.child.as_mut().unwrap().try_wait().unwrap() {
                assert!(!status.success(), "the daemon ended with success");
                self.child = None;
                return Some(self.log());
            }
            assert!(since.elapsed() < DEADLINE, "not ready: {}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
        None
    }

    fn is_ready(&self) -> bool {
        let answer = self.agent.get(format!("{}/readyz", self.url)).call();
        answer.is_ok_and(|answer| answer.status().is_success())
    }

    /// Starts the process, which must end with a failure; returns its log.
    pub(crate) fn expect_failed_start(&mut self) -> String {
        self.spawn();
        self.wait_until_ready_or_ended().unwrap()
    }

    /// Runs `granary verify` on the data while no daemon is running.
    pub(crate) fn verify(&self) -> Output {
        granary().arg("verify").arg(self.data("")).output().unwrap()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// Returns all lines that the present process has logged.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap()
    }

    /// Returns a path below the data directory.
    pub(crate) fn data(&self, name: &str) -> PathBuf {
        self.dir.path().join("data").join(name)
    }

    /// Kills the process with SIGKILL.
    pub(crate) fn kill(&mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Stops the process with SIGTERM; returns the exit code.
    pub(crate) fn stop(&mut self) -> Option<i32> {
        let mut child = self.child.take().unwrap();
        let pid = child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        let since = now();
        loop {
            if let Some(status) = child.try_wait().unwrap() {
                return status.code();
            }
            assert!(since.elapsed() < DEADLINE, "does not stop: {}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn post(&self, media_type: &str, body: &[u8]) -> Answer {
        let url = format!("{}/api/v1/ingest", self.url);
        let sent = self.agent.post(url).content_type(media_type).send(body);
        let mut response = sent.unwrap_or_else(|cause| panic!("{cause}: {}", self.log()));
        let text = response.body_mut().read_to_string().unwrap();
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Answer { status: response.status().as_u16(), body }
    }

    /// Posts samples that the daemon must all accept.
    pub(crate) fn accept(&self, samples: &Value) {
        let answer = self.post_json(&json!({ "samples": samples }));
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert_eq!(answer.body["accepted"], samples.as_array().unwrap().len(), "{}", answer.body);
    }

    pub(crate) fn post_json(&self, body: &Value) -> Answer {
        self.post("application/json", body.to_string().as_bytes())
    }

    /// Runs `granary query --json` with these arguments and returns its answer.
    pub(crate) fn query(&self, args: &[&str]) -> Value {
        let output = self.run_query(args);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    pub(crate) fn run_query(&self, args: &[&str]) -> Output {
        let mut command = granary();
        command.args(["query", "--json", "--url", &self.url]).args(args);
        command.output().unwrap()
    }

    pub(crate) fn metrics(&self) -> String {
        let mut response = self.agent.get(format!("{}/metrics", self.url)).call().unwrap();
        response.body_mut().read_to_string().unwrap()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// Returns all partition files of a granularity, the oldest first. In the second half of a document
/// period, the last partition may contain only shells.
pub(crate) fn partition_files(data: &Path, granularity: &str) -> Vec<PathBuf> {
    let folder = data.join("partitions").join(granularity);
    let entries = fs::read_dir(folder).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Returns the time 30 hours ago in RFC 3339: the documents of all granularities up to 1h are over.
pub(crate) fn yesterday() -> String {
    let at = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(30);
    at.to_string()
}
