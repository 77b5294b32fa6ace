//! Has a release build embed the page anew when what `npm run build` wrote has changed. Other builds
//! read the page's files from their folder when they are asked for.
#![allow(clippy::print_stdout, reason = "so a build script speaks to Cargo")]

/// What `npm run build` writes; see src/api/page/files.rs.
const PAGE: &str = "src/web/dist";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        // Cargo takes a folder that is missing for one that changes all the time. In sources that
        // cannot be written no page will be built either.
        drop(std::fs::create_dir_all(PAGE));
        println!("cargo::rerun-if-changed={PAGE}");
    }
}
