//! How an agent's program ends.
//!
//! Must never know: why it ends.

use std::{
    fmt::Display,
    io::{self, Write},
    process::ExitCode,
};

/// The exit code of a program; why it failed is one line on standard error.
pub fn exit_code(program: &str, outcome: Result<(), impl Display>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(cause) => {
            // Nothing can be done when standard error is closed too.
            drop(writeln!(io::stderr(), "{program}: {cause:#}"));
            ExitCode::FAILURE
        }
    }
}
