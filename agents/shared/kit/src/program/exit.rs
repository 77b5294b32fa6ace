//! The exit of an agent's program.
//!
//! Must never know: the cause of a failure.

use std::{
    fmt::Display,
    io::{self, Write},
    process::ExitCode,
};

/// Returns the exit code of a program, and writes the cause of a failure to standard error in one
/// line.
pub fn exit_code(program: &str, outcome: Result<(), impl Display>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(cause) => {
            // When standard error is closed too, the cause is lost.
            drop(writeln!(io::stderr(), "{program}: {cause:#}"));
            ExitCode::FAILURE
        }
    }
}
