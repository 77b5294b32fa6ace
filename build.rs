//! The build script: a release build embeds the page again when the files of `npm run build` have
//! changed. Debug builds read these files at run time.
#![allow(clippy::print_stdout, reason = "Cargo reads a build script's standard output")]

/// The output folder of `npm run build`; see src/api/page/files.rs.
const PAGE: &str = "src/web/dist";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        // Cargo treats a missing folder as changed in every build. When the folder cannot be
        // created, the page cannot be built either.
        drop(std::fs::create_dir_all(PAGE));
        println!("cargo::rerun-if-changed={PAGE}");
    }
}
