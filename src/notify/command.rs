//! Messages to a command: the command gets the webhook's JSON on its standard input and has a
//! timeout; only the first bytes of its output are kept.
//!
//! Must never know: groups, when anything is sent.

use std::{
    io::{self, Read, Seek, Write},
    os::unix::process::CommandExt,
    process::{Child, ChildStderr, Command as Process, Stdio},
    thread,
    time::Duration,
};

use rustix::{
    fs::{OFlags, fcntl_getfl, fcntl_setfl},
    process::{Pid, Signal, kill_process_group},
};

use super::outcome::{DeliveryOutcome, SendResult, failed, one_line};
use crate::{
    alerts::{Command, Message},
    clock::Stopwatch,
};

/// The maximum size of the output that is kept, in bytes.
const OUTPUT_BYTES_MAX: usize = 4096;
/// The maximum number of reads of the output per check.
const READS_MAX: usize = 64;
/// The interval between two checks for the end of the process.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// The maximum length of an environment variable, in characters: the system limit is 128 KiB.
const VARIABLE_MAX: usize = 16 << 10;

pub(super) fn run(command: &Command, message: &Message) -> SendResult {
    let mut child = start(command, message).map_err(|cause| {
        let name = command.command.first().map_or("", String::as_str);
        failed(format!("{name}: {cause}"))
    })?;
    let mut output =
        Output { pipe: child.stderr.take().filter(set_non_blocking), text: Vec::new() };
    let ended = wait(&mut child, command.timeout_ms, &mut output);
    // The children of the command are ended too, because they may hold the pipe open.
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // All processes of the group may have ended already.
        kill_process_group(group, Signal::KILL).ok();
    }
    drop(child.wait());
    output.read();
    let output = String::from_utf8_lossy(&output.text).trim().to_owned();
    match ended.map_err(failed)? {
        Some(true) => Ok(one_line(&format!("the command succeeded: {output}"))),
        Some(false) => Err(DeliveryOutcome::Failed(format!("the command failed: {output}"))),
        None => Err(DeliveryOutcome::Failed(format!(
            "the command took more than {} ms: {output}",
            command.timeout_ms
        ))),
    }
}

/// The error output of the command. Children of the command may hold the pipe open, so nothing
/// waits for its end.
struct Output {
    pipe: Option<ChildStderr>,
    text: Vec<u8>,
}

impl Output {
    /// Reads the available output, so that the command is not blocked, and keeps the beginning. A
    /// limit on the number of reads ensures that a call ends.
    fn read(&mut self) {
        let mut buffer = [0; 4096];
        for _ in 0..READS_MAX {
            let Some(pipe) = &mut self.pipe else { return };
            match pipe.read(&mut buffer) {
                Ok(0) => self.pipe = None,
                Ok(count) => {
                    let bytes_left = OUTPUT_BYTES_MAX.saturating_sub(self.text.len());
                    self.text.extend(buffer.iter().take(count.min(bytes_left)));
                }
                // No more output is available now.
                Err(_) => return,
            }
        }
    }
}

/// Makes the pipe non-blocking; returns true on success.
fn set_non_blocking(pipe: &ChildStderr) -> bool {
    fcntl_getfl(pipe).and_then(|flags| fcntl_setfl(pipe, flags | OFlags::NONBLOCK)).is_ok()
}

/// Returns a text that fits into an environment variable.
fn variable(text: &str) -> String {
    let plain = |c: char| if c == '\0' { char::REPLACEMENT_CHARACTER } else { c };
    text.chars().take(VARIABLE_MAX).map(plain).collect()
}

/// Starts the command in a separate process group.
fn start(command: &Command, message: &Message) -> io::Result<Child> {
    // The input is a file instead of a pipe, because the command may not read it.
    let mut input = tempfile::tempfile()?;
    input.write_all(message.to_json(0).as_bytes())?;
    input.rewind()?;
    let (program, arguments) = command.command.split_first().ok_or(io::ErrorKind::NotFound)?;
    Process::new(program)
        .args(arguments)
        .env("GRANARY_STATUS", message.status())
        .env("GRANARY_RECEIVER", variable(&message.receiver))
        .env("GRANARY_GROUP_KEY", variable(&message.group_key))
        .stdin(Stdio::from(input))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
}

/// Returns true when the exit status is 0, and `None` after the timeout.
fn wait(child: &mut Child, timeout_ms: i64, output: &mut Output) -> io::Result<Option<bool>> {
    let watch = Stopwatch::start();
    loop {
        output.read();
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status.success()));
        }
        if watch.seconds() * 1000.0 > timeout_ms as f64 {
            return Ok(None);
        }
        thread::sleep(CHECK_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::notify::outcome::message_of_tests;

    fn shell(script: &str, timeout_ms: i64) -> SendResult {
        let command = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
        run(&Command { command, timeout_ms }, &message_of_tests())
    }

    #[test]
    fn a_command_gets_the_message_and_its_exit_status_is_the_outcome() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let script = format!("cat > {0}; echo $GRANARY_STATUS >> {0}", path.display());
        shell(&script, 10_000).unwrap();
        let written = fs::read_to_string(&path).unwrap();
        assert_eq!(written, message_of_tests().to_json(0) + "firing\n");
        let failed = shell("echo no >&2; exit 3", 10_000);
        assert_eq!(failed, Err(DeliveryOutcome::Failed("the command failed: no".to_owned())));
        let missing = Command { command: vec!["/nowhere/at/all".to_owned()], timeout_ms: 1000 };
        assert!(
            matches!(run(&missing, &message_of_tests()), Err(DeliveryOutcome::Failed(cause)) if cause.contains("/nowhere"))
        );
    }

    #[test]
    fn processes_that_a_command_leaves_behind_are_not_waited_for() {
        let watch = Stopwatch::start();
        // A process in a separate session is not ended with the group, and holds the pipe open.
        let sent = shell("setsid sleep 60 & echo started >&2; exit 0", 10_000);
        assert_eq!(sent, Ok("the command succeeded: started".to_owned()));
        let outcome = shell("setsid sleep 60 & echo left >&2; exit 1", 10_000);
        assert_eq!(outcome, Err(DeliveryOutcome::Failed("the command failed: left".to_owned())));
        assert!(watch.seconds() < 30.0, "{}", watch.seconds());
    }

    #[test]
    fn a_command_with_much_output_is_not_blocked() {
        let loud_script = "i=0; while [ $i -lt 5000 ]; do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa >&2; \
                    i=$((i+1)); done";
        shell(loud_script, 30_000).unwrap();
        let Err(DeliveryOutcome::Failed(output)) = shell(&format!("{loud_script}; exit 1"), 30_000)
        else {
            panic!()
        };
        assert!((4000..5000).contains(&output.len()), "{}", output.len());
    }

    #[test]
    fn labels_that_exceed_the_environment_are_shortened() {
        let mut message = message_of_tests();
        message.group_key = "a\0b".to_owned() + &"\u{e4}".repeat(200_000);
        let command =
            ["/bin/sh", "-c", "test ${#GRANARY_GROUP_KEY} -gt 16000"].map(str::to_owned).to_vec();
        let sent = run(&Command { command, timeout_ms: 10_000 }, &message);
        assert_eq!(sent, Ok("the command succeeded".to_owned()));
    }

    #[test]
    fn a_command_that_runs_too_long_or_prints_too_much_is_ended() {
        let watch = Stopwatch::start();
        let outcome = shell("sleep 100 & sleep 100", 200);
        assert!(
            matches!(&outcome, Err(DeliveryOutcome::Failed(cause)) if cause.contains("200 ms")),
            "{outcome:?}"
        );
        let outcome = shell(
            "while echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa >&2; do :; done",
            500,
        );
        let Err(DeliveryOutcome::Failed(output)) = outcome else { panic!("{outcome:?}") };
        assert!(output.len() < 5000 && watch.seconds() < 50.0, "{}", output.len());
    }
}
