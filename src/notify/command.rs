//! Messages to a command: it gets the webhook's JSON on its standard input, a timeout, and a few
//! lines of the log.
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

use super::outcome::{Outcome, Sent, failed, one_line};
use crate::{
    alerts::{Command, Message},
    clock::Stopwatch,
};

/// The maximum size of the output that is kept, in bytes.
const SAID_BYTES_MAX: usize = 4096;
/// The maximum number of reads of the output per check.
const READS_MAX: usize = 64;
/// The interval between two checks for the end of the process.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The maximum length of an environment variable, in characters: the system rejects more than 128
/// KiB.
const VARIABLE_MAX: usize = 16 << 10;

pub(super) fn run(own: &Command, message: &Message) -> Sent {
    let mut child = start(own, message).map_err(|cause| {
        let name = own.command.first().map_or("", String::as_str);
        failed(format!("{name}: {cause}"))
    })?;
    let mut said = Said { from: child.stderr.take().filter(never_waits), text: Vec::new() };
    let ended = wait(&mut child, own.timeout_ms, &mut said);
    // The whole process group is killed, because children may hold the pipes open.
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // All of them may have ended already.
        kill_process_group(group, Signal::KILL).ok();
    }
    drop(child.wait());
    said.read();
    let said = String::from_utf8_lossy(&said.text).trim().to_owned();
    match ended.map_err(failed)? {
        Some(true) => Ok(one_line(&format!("it ended well: {said}"))),
        Some(false) => Err(Outcome::Failed(format!("it ended badly: {said}"))),
        None => Err(Outcome::Failed(format!("it took more than {} ms: {said}", own.timeout_ms))),
    }
}

/// The output of the command. Its children may hold the pipe open, so nobody waits for the
/// end.
struct Said {
    from: Option<ChildStderr>,
    text: Vec<u8>,
}

impl Said {
    /// Reads the available output, so that the command can continue, and keeps the beginning. A
    /// check reads at most a few times the size of a pipe.
    fn read(&mut self) {
        let mut some = [0; 4096];
        for _ in 0..READS_MAX {
            let Some(from) = &mut self.from else { return };
            match from.read(&mut some) {
                Ok(0) => self.from = None,
                Ok(count) => {
                    let left = SAID_BYTES_MAX.saturating_sub(self.text.len());
                    self.text.extend(some.iter().take(count.min(left)));
                }
                // The pipe is empty now.
                Err(_) => return,
            }
        }
    }
}

/// Makes reads of an empty pipe return at once.
fn never_waits(pipe: &ChildStderr) -> bool {
    fcntl_getfl(pipe).and_then(|flags| fcntl_setfl(pipe, flags | OFlags::NONBLOCK)).is_ok()
}

/// A text in the form of an environment variable.
fn variable(text: &str) -> String {
    let plain = |own: char| if own == '\0' { char::REPLACEMENT_CHARACTER } else { own };
    text.chars().take(VARIABLE_MAX).map(plain).collect()
}

/// Starts the command in a new process group.
fn start(own: &Command, message: &Message) -> io::Result<Child> {
    // The input is a file, not a pipe, because the command may not read it.
    let mut input = tempfile::tempfile()?;
    input.write_all(message.to_json(0).as_bytes())?;
    input.rewind()?;
    let (program, arguments) = own.command.split_first().ok_or(io::ErrorKind::NotFound)?;
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

/// Returns whether the exit status is 0; `None` after the timeout.
fn wait(child: &mut Child, timeout_ms: i64, said: &mut Said) -> io::Result<Option<bool>> {
    let watch = Stopwatch::start();
    loop {
        said.read();
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
    use crate::notify::outcome::message_of_tests;

    fn shell(script: &str, timeout_ms: i64) -> Sent {
        let command = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
        run(&Command { command, timeout_ms }, &message_of_tests())
    }

    #[test]
    fn a_command_is_given_the_message_and_its_end_is_the_answer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let script = format!("cat > {0}; echo $GRANARY_STATUS >> {0}", path.display());
        shell(&script, 10_000).unwrap();
        let written = fs::read_to_string(&path).unwrap();
        assert_eq!(written, message_of_tests().to_json(0) + "firing\n");
        let failed = shell("echo no >&2; exit 3", 10_000);
        assert_eq!(failed, Err(Outcome::Failed("it ended badly: no".to_owned())));
        let none = Command { command: vec!["/nowhere/at/all".to_owned()], timeout_ms: 1000 };
        assert!(
            matches!(run(&none, &message_of_tests()), Err(Outcome::Failed(own)) if own.contains("/nowhere"))
        );
    }

    #[test]
    fn a_command_that_leaves_something_behind_is_not_waited_for() {
        let watch = Stopwatch::start();
        // A process in another session is not killed with the group, and holds the pipe open.
        let said = shell("setsid sleep 60 & echo started >&2; exit 0", 10_000);
        assert_eq!(said, Ok("it ended well: started".to_owned()));
        let outcome = shell("setsid sleep 60 & echo left >&2; exit 1", 10_000);
        assert_eq!(outcome, Err(Outcome::Failed("it ended badly: left".to_owned())));
        assert!(watch.seconds() < 30.0, "{}", watch.seconds());
    }

    #[test]
    fn a_command_that_says_much_is_not_disturbed_by_that() {
        let much = "i=0; while [ $i -lt 5000 ]; do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa >&2; \
                    i=$((i+1)); done";
        shell(much, 30_000).unwrap();
        let Err(Outcome::Failed(said)) = shell(&format!("{much}; exit 1"), 30_000) else {
            panic!()
        };
        assert!((4000..5000).contains(&said.len()), "{}", said.len());
    }

    #[test]
    fn labels_that_no_environment_can_hold_are_told_all_the_same() {
        let mut own = message_of_tests();
        own.group_key = "a\0b".to_owned() + &"\u{e4}".repeat(200_000);
        let command =
            ["/bin/sh", "-c", "test ${#GRANARY_GROUP_KEY} -gt 16000"].map(str::to_owned).to_vec();
        let sent = run(&Command { command, timeout_ms: 10_000 }, &own);
        assert_eq!(sent, Ok("it ended well".to_owned()));
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
