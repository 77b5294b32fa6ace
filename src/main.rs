//! The `granary` command.

use std::process::ExitCode;

/// A quarter to a third less CPU than with glibc's allocator on the ingest path (see ARCHITECTURE.md).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    granary::cli::run()
}
