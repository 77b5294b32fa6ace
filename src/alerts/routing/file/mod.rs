//! Files of notifications in Alertmanager's format: from text to checked routes and receivers, or to
//! all that is wrong with it.
//!
//! Must never know: what is sent, and when.

mod chats;
mod check;
mod http;
mod raw;
mod receivers;
#[cfg(test)]
mod tests;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::Routing;
use crate::alerts::{MessageTemplates, RuleFault};
use check::Checking;
pub use check::RESOLVE_TIMEOUT_MS;
pub use http::read_http;
use raw::RawFile;
pub(super) use raw::RawInterval;

/// Bytes of a file, and of all templates, at most.
const FILE_BYTES_MAX: usize = 1 << 20;
/// Files of templates, at most.
const TEMPLATE_FILES_MAX: usize = 100;

/// Reads a file of notifications, and the templates that it names.
///
/// # Errors
/// With everything that is wrong.
pub fn read_routing(path: &Path) -> Result<Routing, Vec<RuleFault>> {
    let file = path.to_string_lossy();
    let fault = |problem: String| RuleFault {
        file: file.clone().into_owned(),
        place: String::new(),
        problem,
    };
    let text = bounded_text(path).map_err(|cause| vec![fault(cause.to_string())])?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut routing = check_routing(&file, folder, &text)?;
    let mut faults = Vec::new();
    for pattern in std::mem::take(&mut routing.templates) {
        match templates(folder, &pattern) {
            Ok(texts) => routing.templates.extend(texts),
            Err(problem) => faults.push(fault(format!("templates: {pattern:?}: {problem}"))),
        }
    }
    if routing.templates.iter().map(String::len).sum::<usize>() > FILE_BYTES_MAX {
        faults.push(fault(format!("templates have more than {FILE_BYTES_MAX} bytes")));
    }
    if faults.is_empty() {
        match MessageTemplates::new(&routing.templates) {
            Ok(templates) => {
                faults.extend(routing.texts().into_iter().filter_map(|(place, text)| {
                    let problem = templates.check(text).err()?;
                    Some(RuleFault { place, ..fault(problem) })
                }));
            }
            Err(problem) => faults.push(fault(format!("templates: {problem}"))),
        }
    }
    if faults.is_empty() { Ok(routing) } else { Err(faults) }
}

/// Checks a text; templates are still names of files.
pub(super) fn check_routing(
    file: &str,
    folder: &Path,
    text: &str,
) -> Result<Routing, Vec<RuleFault>> {
    let options = serde_saphyr::options! { with_snippet: false };
    let raw = serde_saphyr::from_str_with_options::<RawFile>(text, options).map_err(|cause| {
        let (file, place, problem) = (file.to_owned(), String::new(), cause.to_string());
        vec![RuleFault { file, place, problem }]
    })?;
    let mut checking = Checking::new(file, folder);
    let routing = checking.routing(raw);
    let faults = checking.into_faults();
    if faults.is_empty() { Ok(routing) } else { Err(faults) }
}

fn bounded_text(path: &Path) -> io::Result<String> {
    if fs::metadata(path)?.len() > FILE_BYTES_MAX as u64 {
        let message = format!("it has more than {FILE_BYTES_MAX} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    fs::read_to_string(path)
}

/// The texts of the files that a pattern names, from the folder of the file that names it.
fn templates(folder: &Path, pattern: &str) -> Result<Vec<String>, String> {
    let pattern = folder.join(pattern);
    let found = glob::glob(&pattern.to_string_lossy()).map_err(|cause| cause.to_string())?;
    let paths: Result<Vec<PathBuf>, _> = found.take(TEMPLATE_FILES_MAX).collect();
    let texts = paths
        .map_err(|cause| cause.to_string())?
        .into_iter()
        .map(|path| bounded_text(&path).map_err(|cause| format!("{}: {cause}", path.display())));
    texts.collect()
}
