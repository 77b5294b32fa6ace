//! The `granary` command.

use std::process::ExitCode;

/// Half the CPU time of glibc's allocator on the ingest path (see ARCHITECTURE.md).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    granary::cli::run()
}
