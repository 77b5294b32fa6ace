//! Execution of another program within limits of time and output.
//!
//! The program runs in its own process group, which is killed at the end. A program that the kernel
//! does not end, because it waits for a device, stays in a list, and does not run a second time.
//! Must never know: the meaning of the output.

use std::{
    ffi::OsString,
    io,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::process::CommandExt,
    },
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::retry_on_intr,
    process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open},
};

use crate::clock::Stopwatch;

/// The number of bytes of standard error that are kept.
const STDERR_BYTES_MAX: usize = 4 << 10;
/// The size of the buffer of a read.
const READ_BYTES: usize = 16 << 10;

/// The time that a killed program has to end.
const END_TIMEOUT: Duration = Duration::from_secs(1);

/// The killed programs that have not ended yet, at most one of each command line.
static UNENDED: Mutex<Vec<UnendedProgram>> = Mutex::new(Vec::new());

/// The output and exit status of a program.
#[derive(Debug)]
pub struct FinishedProgram {
    /// Standard output.
    pub output: Vec<u8>,
    /// The first bytes of standard error.
    pub errors: Vec<u8>,
    /// The exit status.
    pub status: ExitStatus,
}

/// Runs a program until it exits, or until `end` becomes readable.
///
/// # Errors
/// The reason why the program could not start, or was killed.
pub fn run_program(
    command: &mut Command,
    timeout: Duration,
    output_max: usize,
    end: Option<BorrowedFd<'_>>,
) -> Result<FinishedProgram, String> {
    let command_line = command_line(command);
    if is_unended(&command_line) {
        return Err("the previous run was killed and has not ended yet".to_owned());
    }
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn();
    let describe = |cause| format!("{}: {cause}", command.get_program().display());
    let mut process = ProgramProcess(child.map_err(describe)?);
    let outputs = process.watch(timeout, output_max, end);
    // This also kills processes that the program left running.
    process.kill();
    let status = process.end(command_line, END_TIMEOUT);
    let (output, errors) = outputs?;
    Ok(FinishedProgram { output, errors, status: status? })
}

/// A killed program that has not ended yet.
struct UnendedProgram {
    command_line: Vec<OsString>,
    child: Child,
}

fn command_line(command: &Command) -> Vec<OsString> {
    std::iter::once(command.get_program()).chain(command.get_args()).map(OsString::from).collect()
}

/// Reaps the killed programs that have ended since. Returns true if this one has not.
fn is_unended(command_line: &[OsString]) -> bool {
    let mut unended = UNENDED.lock().unwrap_or_else(PoisonError::into_inner);
    unended.retain_mut(|program| matches!(program.child.try_wait(), Ok(None)));
    unended.iter().any(|program| program.command_line == command_line)
}

/// A program with its process group.
struct ProgramProcess(Child);

impl ProgramProcess {
    /// Reads both outputs until the program has exited, without reaping it, so that its process ID
    /// is not reused.
    fn watch(
        &mut self,
        timeout: Duration,
        output_max: usize,
        end: Option<BorrowedFd<'_>>,
    ) -> Result<(Vec<u8>, Vec<u8>), String> {
        let describe = |cause: io::Error| cause.to_string();
        let watch = Stopwatch::start();
        let pid = Pid::from_child(&self.0);
        let exit = pidfd_open(pid, PidfdFlags::empty()).map_err(|cause| describe(cause.into()))?;
        let mut output = Pipe::new(self.0.stdout.take().map(Into::into));
        let mut errors = Pipe::new(self.0.stderr.take().map(Into::into));
        let mut is_running = true;
        while is_running {
            let left = watch.left_of(timeout);
            if left.is_zero() {
                return Err(format!("took longer than {timeout:?}"));
            }
            let [has_ended, must_stop] =
                wait_readable(exit.as_fd(), end, &[&output, &errors], left).map_err(describe)?;
            if must_stop {
                return Err("killed because the agent stopped or its settings changed".to_owned());
            }
            is_running = !has_ended;
            output.read_part().map_err(describe)?;
            errors.read_part().map_err(describe)?;
            errors.read.truncate(STDERR_BYTES_MAX);
            // After the exit, the pipe contains all output of the program. Other processes may keep
            // the pipe open; the loop does not wait for them.
            while !is_running && output.read.len() <= output_max {
                if !output.read_part().map_err(describe)? {
                    break;
                }
            }
            if output.read.len() > output_max {
                return Err(format!("printed more than {output_max} bytes"));
            }
        }
        Ok((output.read, errors.read))
    }

    /// Kills the process group.
    fn kill(&self) {
        // The program is not reaped yet, so the group ID is still valid. The call fails when the
        // group has already ended.
        let _outcome = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
    }

    /// Returns the exit status. A program that does not end in time is reaped by a later run.
    fn end(mut self, command_line: Vec<OsString>, timeout: Duration) -> Result<ExitStatus, String> {
        // Without a file of the process, its end is seen by a later run.
        let _outcome = wait_end(Pid::from_child(&self.0), timeout);
        if let Some(status) = self.0.try_wait().map_err(|cause| cause.to_string())? {
            return Ok(status);
        }
        let mut unended = UNENDED.lock().unwrap_or_else(PoisonError::into_inner);
        unended.push(UnendedProgram { command_line, child: self.0 });
        Err("was killed and has not ended yet".to_owned())
    }
}

/// Waits until a process has ended, for at most `timeout`.
fn wait_end(pid: Pid, timeout: Duration) -> io::Result<()> {
    let watch = Stopwatch::start();
    let exit = pidfd_open(pid, PidfdFlags::empty())?;
    let mut left = timeout;
    while !left.is_zero() {
        let [has_ended, _] = wait_readable(exit.as_fd(), None, &[], left)?;
        if has_ended {
            break;
        }
        left = watch.left_of(timeout);
    }
    Ok(())
}

/// Waits up to `left` until an event or a pipe is readable. Returns whether `exit` is readable, and
/// whether `end` is.
fn wait_readable(
    exit: BorrowedFd<'_>,
    end: Option<BorrowedFd<'_>>,
    pipes: &[&Pipe],
    left: Duration,
) -> io::Result<[bool; 2]> {
    let pipes = pipes.iter().filter_map(|pipe| pipe.open.as_ref()).map(AsFd::as_fd);
    let mut polled: Vec<_> = std::iter::once(exit)
        .chain(end)
        .chain(pipes)
        .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
        .collect();
    let left = Timespec {
        tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: left.subsec_nanos().into(),
    };
    match poll(&mut polled, Some(&left)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(cause) => return Err(cause.into()),
    }
    let is_readable =
        |index: usize| polled.get(index).is_some_and(|state| !state.revents().is_empty());
    Ok([is_readable(0), end.is_some() && is_readable(1)])
}

/// A pipe from the program.
struct Pipe {
    /// `None` after the pipe was closed.
    open: Option<OwnedFd>,
    read: Vec<u8>,
}

impl Pipe {
    fn new(open: Option<OwnedFd>) -> Self {
        Self { open, read: Vec::new() }
    }

    /// Reads available data. Returns false when no data is available.
    fn read_part(&mut self) -> io::Result<bool> {
        let Some(fd) = &self.open else { return Ok(false) };
        let mut state = [PollFd::new(fd, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        if retry_on_intr(|| poll(&mut state, Some(&now)))? == 0 {
            return Ok(false);
        }
        let mut buffer = [0; READ_BYTES];
        let length = retry_on_intr(|| rustix::io::read(fd, &mut buffer[..]))?;
        if length == 0 {
            self.open = None;
        }
        self.read.extend_from_slice(buffer.get(..length).unwrap_or_default());
        Ok(length > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG_TIMEOUT: Duration = Duration::from_secs(30);

    fn run_shell(
        script: &str,
        timeout: Duration,
        output_max: usize,
    ) -> Result<FinishedProgram, String> {
        run_program(Command::new("sh").args(["-c", script]), timeout, output_max, None)
    }

    #[test]
    fn output_errors_and_exit_code_are_kept() {
        let finished = run_shell("echo out; echo err >&2; exit 3", LONG_TIMEOUT, 100).unwrap();
        assert_eq!((&finished.output[..], &finished.errors[..]), (&b"out\n"[..], &b"err\n"[..]));
        assert_eq!(finished.status.code(), Some(3));
        let long = run_shell(
            "head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2",
            LONG_TIMEOUT,
            1 << 20,
        );
        let long = long.unwrap();
        assert_eq!((long.output.len(), long.errors.len()), (300_000, STDERR_BYTES_MAX));
        let mut missing = Command::new("/nonexistent/plugin");
        let fault = run_program(&mut missing, LONG_TIMEOUT, 9, None).unwrap_err();
        assert!(fault.starts_with("/nonexistent/plugin: "), "{fault}");
    }

    #[test]
    fn a_program_over_a_limit_is_killed_with_its_child_processes() {
        let folder = tempfile::tempdir().unwrap();
        let pid_file = folder.path().join("pid");
        let script = format!("sleep 1000 & echo $! > {}; wait", pid_file.display());
        let fault = run_shell(&script, Duration::from_millis(500), 100).unwrap_err();
        assert_eq!(fault, "took longer than 500ms");
        let pid = std::fs::read_to_string(&pid_file).unwrap();
        let state = || std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
        // A zombie may remain, but no process is running.
        let watch = Stopwatch::start();
        while state().is_ok_and(|text| !text.contains(") Z ")) {
            assert!(!watch.left_of(LONG_TIMEOUT).is_zero(), "{:?}", state());
            std::thread::yield_now();
        }
        let watch = Stopwatch::start();
        assert_eq!(
            run_shell("yes", LONG_TIMEOUT, 1000).unwrap_err(),
            "printed more than 1000 bytes"
        );
        assert!(!watch.left_of(LONG_TIMEOUT).is_zero());
    }

    #[test]
    fn a_program_is_killed_when_its_end_is_requested() {
        let (end, open) = io::pipe().unwrap();
        drop(open);
        let mut command = Command::new("sleep");
        let fault = run_program(command.arg("1000"), LONG_TIMEOUT, 9, Some(end.as_fd()));
        assert_eq!(fault.unwrap_err(), "killed because the agent stopped or its settings changed");
    }

    /// A process that waits for a device ignores even SIGKILL; here, nothing kills it.
    #[test]
    fn a_program_that_does_not_end_is_reaped_later_and_runs_once() {
        let folder = tempfile::tempdir().unwrap();
        let (go, script) = (folder.path().join("go"), "[ -e \"$0\" ] || exec sleep 1000");
        let command = || {
            let mut command = Command::new("sh");
            command.args(["-c", script]).arg(&go).process_group(0);
            command
        };
        let process = ProgramProcess(command().spawn().unwrap());
        let pid = Pid::from_child(&process.0);
        let fault = process.end(command_line(&command()), Duration::from_millis(1)).unwrap_err();
        assert_eq!(fault, "was killed and has not ended yet");
        let again = run_program(&mut command(), LONG_TIMEOUT, 9, None);
        assert_eq!(again.unwrap_err(), "the previous run was killed and has not ended yet");
        let other = run_shell("echo other", LONG_TIMEOUT, 9).unwrap();
        assert_eq!(other.output, b"other\n");
        std::fs::write(&go, "").unwrap();
        kill_process_group(pid, Signal::KILL).unwrap();
        wait_end(pid, LONG_TIMEOUT).unwrap();
        let last = run_program(&mut command(), LONG_TIMEOUT, 9, None).unwrap();
        assert!(last.status.success());
        assert!(!is_unended(&command_line(&command())));
    }

    #[test]
    fn the_end_of_a_program_does_not_wait_for_child_processes_of_the_program() {
        let watch = Stopwatch::start();
        let finished = run_shell("echo done; sleep 1000 &", LONG_TIMEOUT, 100).unwrap();
        assert_eq!(finished.output, b"done\n");
        assert!(!watch.left_of(LONG_TIMEOUT).is_zero());
    }
}
