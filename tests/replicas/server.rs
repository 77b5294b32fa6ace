//! A server of MongoDB's protocol as a process that can be killed, and a folder for its data.

use std::{
    fs,
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use tempfile::TempDir;

use crate::ports::free_port;

/// A server, which is killed when this value is dropped.
pub(crate) struct Server {
    pub(crate) dir: TempDir,
    pub(crate) port: u16,
    process: Option<Child>,
}

pub(crate) fn wait_until(what: &str, seconds: u64, mut is_done: impl FnMut() -> bool) {
    for _ in 0..seconds * 20 {
        if is_done() {
            return;
        }
        thread::sleep(Duration::from_millis(50));
    }
    panic!("timed out waiting for {what}");
}

impl Server {
    pub(crate) fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("db")).unwrap();
        let mut server = Self { dir, port: free_port(), process: None };
        server.restart();
        server
    }

    pub(crate) fn uri(&self) -> String {
        format!("mongodb://127.0.0.1:{}/?directConnection=true", self.port)
    }

    /// Starts the server so that a kill loses nothing that it confirmed.
    pub(crate) fn restart(&mut self) {
        let python = std::env::var("GRANARY_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
        let program = Path::new(&python).with_file_name("secantusd-py");
        let log = fs::File::options().create(true).append(true).open(self.dir.path().join("log"));
        let log = log.unwrap();
        let mut command = Command::new(&program);
        command.args(["--host", "127.0.0.1", "--port", &self.port.to_string()]);
        command.args(["--sync-on-commit", "--enable-test-commands", "--storage-path"]);
        command.arg(self.dir.path().join("db")).stdin(Stdio::null());
        command.stdout(log.try_clone().unwrap()).stderr(log);
        let process = command.spawn();
        let process = process.unwrap_or_else(|error| {
            panic!(
                "{}: {error}; .ci/run installs it, GRANARY_TEST_PYTHON names it",
                program.display()
            )
        });
        self.process = Some(process);
        wait_until("the server", 30, || TcpStream::connect(("127.0.0.1", self.port)).is_ok());
    }

    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
