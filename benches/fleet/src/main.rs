//! The program: arguments in, exit code out.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let outcome = granary_bench::run(&granary_bench::Args::parse());
    granary_agent_kit::exit_code("granary-bench", outcome)
}
