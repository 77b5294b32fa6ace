//! The notification file, loaded with its templates.
//!
//! `alerts` checks its content. Must never know: delivery, schedules.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::alerts::{FileFault, MessageTemplates, Routing, check_routing};

/// The maximum size of a file, and of all templates together, in bytes.
const FILE_BYTES_MAX: usize = 1 << 20;
/// The maximum number of template files that one pattern matches.
const TEMPLATE_FILES_MAX: usize = 100;

/// Loads a notification file and its templates.
///
/// # Errors
/// All faults in these files.
pub fn read_routing(path: &Path) -> Result<Routing, Vec<FileFault>> {
    let file = path.to_string_lossy();
    let fault = |problem: String| FileFault::of_file(&file, problem);
    let text = bounded_text(path).map_err(|cause| vec![fault(cause.to_string())])?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut routing = check_routing(&file, Some(folder), &text)?;
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
    if faults.is_empty() { with_checked_texts(&file, routing) } else { Err(faults) }
}

/// Reads a text of receivers that is not from a file, so it may not name files or commands. `name`
/// is its name in faults.
///
/// # Errors
/// All faults of the text.
pub(super) fn read_receivers(name: &str, text: &str) -> Result<Routing, Vec<FileFault>> {
    with_checked_texts(name, check_routing(name, None, text)?)
}

/// Checks the templates of messages.
fn with_checked_texts(file: &str, routing: Routing) -> Result<Routing, Vec<FileFault>> {
    let fault = |problem: String| FileFault::of_file(file, problem);
    let templates = MessageTemplates::new(&routing.templates)
        .map_err(|problem| vec![fault(format!("templates: {problem}"))])?;
    let faults = routing.texts().into_iter().filter_map(|(location, text)| {
        let problem = templates.check(text).err()?;
        Some(FileFault { location, ..fault(problem) })
    });
    let faults: Vec<_> = faults.collect();
    if faults.is_empty() { Ok(routing) } else { Err(faults) }
}

/// Returns the text of an operator's file; refuses a larger one.
pub(super) fn bounded_text(path: &Path) -> io::Result<String> {
    if fs::metadata(path)?.len() > FILE_BYTES_MAX as u64 {
        let message = format!("the file has more than {FILE_BYTES_MAX} bytes: split it");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    fs::read_to_string(path)
}

/// Returns the texts of the files that match a pattern, relative to the folder of the notification
/// file.
fn templates(folder: &Path, pattern: &str) -> Result<Vec<String>, String> {
    let pattern = folder.join(pattern);
    let found = glob::glob(&pattern.to_string_lossy()).map_err(|cause| cause.to_string())?;
    let paths: Result<Vec<PathBuf>, _> = found.take(TEMPLATE_FILES_MAX + 1).collect();
    let paths = paths.map_err(|cause| cause.to_string())?;
    if paths.len() > TEMPLATE_FILES_MAX {
        return Err(format!("more than {TEMPLATE_FILES_MAX} files match: merge some of them"));
    }
    let texts = paths
        .into_iter()
        .map(|path| bounded_text(&path).map_err(|cause| format!("{}: {cause}", path.display())));
    texts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_read_from_the_folder_of_the_file_and_checked() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let text = "route: {receiver: a}\ntemplates: ['*.tmpl']\nreceivers:\n- name: a\n  \
                    slack_configs: [{api_url: 'http://x', title: '{{ template \"own\" . }}'}]\n";
        fs::write(at("notify.yml"), text).unwrap();
        let problem = |expected: &str| {
            let faults = read_routing(&at("notify.yml")).unwrap_err();
            let message = faults.iter().map(FileFault::to_string).collect::<String>();
            assert!(message.contains(expected), "{message}");
        };
        problem("receiver \"a\", slack/0: title: the template \"own\" is not defined");
        fs::write(at("own.tmpl"), "{{ define \"own\" }}{{ .Status }}{{ end }}").unwrap();
        assert_eq!(read_routing(&at("notify.yml")).unwrap().templates.len(), 1);
        fs::write(at("own.tmpl"), "{{ define \"own\" }}{{ .Status").unwrap();
        problem("templates");
        for index in 0..TEMPLATE_FILES_MAX {
            fs::write(at(&format!("{index}.tmpl")), "").unwrap();
        }
        problem("more than 100 files match");
        assert!(read_routing(&at("none.yml")).is_err());
    }
}
