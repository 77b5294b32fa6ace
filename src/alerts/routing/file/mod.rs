//! Notification files in Alertmanager's format: the checks, whose result is the routing or the
//! faults.
//!
//! Must never know: what is sent, and when.

mod chats;
mod check;
mod http;
mod raw;
mod raw_http;
mod receivers;
#[cfg(test)]
mod tests;

use std::path::Path;

use super::Routing;
use crate::alerts::FileFault;
use check::FileChecker;
pub use check::RESOLVE_TIMEOUT_MS;
pub use http::read_http;
use raw::RawFile;

/// Checks the text of a file. `file` is its name in faults; relative paths in it start at `folder`.
/// Without a folder, the text is not from a file and may not name files or commands. The templates
/// in the result are still the names of files, not their texts.
///
/// # Errors
/// When the file has faults: all of them, or only the first when it is not valid YAML.
pub fn check_routing(
    file: &str,
    folder: Option<&Path>,
    text: &str,
) -> Result<Routing, Vec<FileFault>> {
    let options = serde_saphyr::options! { with_snippet: false };
    let raw = serde_saphyr::from_str_with_options::<RawFile>(text, options)
        .map_err(|cause| vec![FileFault::of_yaml(file, &cause)])?;
    let mut checker = FileChecker::new(file, folder);
    let routing = checker.routing(raw);
    let faults = checker.into_faults();
    if faults.is_empty() { Ok(routing) } else { Err(faults) }
}
