//! The `granary` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    granary::cli::run()
}
