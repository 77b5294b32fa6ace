//! Messages by a command: it is given the webhook's JSON, a time, and no more of the log than a few
//! lines.
//!
//! Must never know: groups, when anything is sent.

use std::{
    io::{self, Read, Seek, Write},
    os::unix::process::CommandExt,
    process::{Child, Command as Process, Stdio},
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process_group};

use super::delivery::{Outcome, failed};
use crate::{
    alerts::{Command, Message},
    clock::Stopwatch,
};

/// Bytes of what it says that are read; behind them nobody reads.
const SAID_BYTES_MAX: u64 = 4096;
/// How often is looked whether it has ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);

pub(super) fn run(own: &Command, message: &Message) -> Result<(), Outcome> {
    let mut child = start(own, message).map_err(|cause| {
        let name = own.command.first().map_or("", String::as_str);
        failed(format!("{name}: {cause}"))
    })?;
    let said = child.stderr.take().map(|from| {
        thread::spawn(move || {
            let mut said = Vec::new();
            // What was read until then is enough.
            drop(from.take(SAID_BYTES_MAX).read_to_end(&mut said));
            said
        })
    });
    let ended = wait(&mut child, own.timeout_ms);
    // Also what it has started, which may hold its ends of pipes.
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // All of them may have ended.
        kill_process_group(group, Signal::KILL).ok();
    }
    drop(child.wait());
    let said = said.and_then(|reading| reading.join().ok()).unwrap_or_default();
    let said = String::from_utf8_lossy(&said).trim().to_owned();
    match ended.map_err(failed)? {
        Some(true) => Ok(()),
        Some(false) => Err(Outcome::Failed(format!("it ended badly: {said}"))),
        None => Err(Outcome::Failed(format!("it took more than {} ms: {said}", own.timeout_ms))),
    }
}

/// Starts it in a group of processes of its own.
fn start(own: &Command, message: &Message) -> io::Result<Child> {
    // A file, not a pipe: it may not read at all.
    let mut input = tempfile::tempfile()?;
    input.write_all(message.to_json(0).as_bytes())?;
    input.rewind()?;
    let (program, arguments) = own.command.split_first().ok_or(io::ErrorKind::NotFound)?;
    Process::new(program)
        .args(arguments)
        .env("GRANARY_STATUS", message.status())
        .env("GRANARY_RECEIVER", &message.receiver)
        .env("GRANARY_GROUP_KEY", &message.group_key)
        .stdin(Stdio::from(input))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
}

/// Whether it ended well; `None`: it takes too long.
fn wait(child: &mut Child, timeout_ms: i64) -> io::Result<Option<bool>> {
    let watch = Stopwatch::start();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status.success()));
        }
        if watch.seconds() * 1000.0 > timeout_ms as f64 {
            return Ok(None);
        }
        thread::sleep(LOOK_EVERY);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::alerts::{LabelSet, MessageAlert};

    fn message() -> Message {
        let labels: LabelSet = [("alertname".to_owned(), "High".to_owned())].into();
        let alert = MessageAlert {
            labels: labels.clone(),
            annotations: LabelSet::new(),
            starts_at: 0,
            ends_at: None,
            acknowledged_by: None,
        };
        Message {
            receiver: "team".to_owned(),
            alerts: vec![alert],
            group_labels: labels,
            group_key: "key".to_owned(),
            left_out: 0,
        }
    }

    fn shell(script: &str, timeout_ms: i64) -> Result<(), Outcome> {
        let command = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
        run(&Command { command, timeout_ms }, &message())
    }

    #[test]
    fn a_command_is_given_the_message_and_its_end_is_the_answer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let script = format!("cat > {0}; echo $GRANARY_STATUS >> {0}", path.display());
        assert_eq!(shell(&script, 10_000), Ok(()));
        let written = fs::read_to_string(&path).unwrap();
        assert_eq!(written, message().to_json(0) + "firing\n");
        let failed = shell("echo no >&2; exit 3", 10_000);
        assert_eq!(failed, Err(Outcome::Failed("it ended badly: no".to_owned())));
        let none = Command { command: vec!["/nowhere/at/all".to_owned()], timeout_ms: 1000 };
        assert!(
            matches!(run(&none, &message()), Err(Outcome::Failed(own)) if own.contains("/nowhere"))
        );
    }

    #[test]
    fn a_command_that_takes_too_long_or_says_too_much_is_ended() {
        let watch = Stopwatch::start();
        let outcome = shell("sleep 100 & sleep 100", 200);
        assert!(
            matches!(&outcome, Err(Outcome::Failed(own)) if own.contains("200 ms")),
            "{outcome:?}"
        );
        let outcome = shell(
            "while echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa >&2; do :; done",
            500,
        );
        let Err(Outcome::Failed(said)) = outcome else { panic!("{outcome:?}") };
        assert!(said.len() < 5000 && watch.seconds() < 50.0, "{}", said.len());
    }
}
