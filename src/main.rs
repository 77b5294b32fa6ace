//! The `granary` command.

use std::process::ExitCode;

/// The allocator, with which ingest takes a quarter to a third less CPU than with glibc's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    granary::cli::run()
}
