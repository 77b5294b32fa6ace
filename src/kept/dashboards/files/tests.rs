//! Tests of dashboards in files: faults, changes, limits.

use std::{fs, path::Path};

use super::*;

fn titled(title: &str) -> String {
    format!(r#"{{"schema": 1, "title": "{title}", "variables": [], "panels": []}}"#)
}

fn names(files: &DashboardFiles) -> Vec<String> {
    files.get().dashboards.keys().cloned().collect()
}

fn faults(files: &DashboardFiles) -> Vec<(String, String)> {
    let set = files.get();
    set.faults.iter().map(|fault| (fault.file.clone(), fault.message.clone())).collect()
}

fn write(folder: &Path, name: &str, text: &str) {
    fs::write(folder.join(name), text).unwrap();
}

#[test]
fn a_faulty_file_is_named_and_the_others_are_used() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write(at, "web.json", &titled("Web"));
    write(at, "saved.json", &format!(r#"{{"version": 7, "dashboard": {}}}"#, titled("Saved")));
    write(at, "notes.txt", "no dashboard");
    write(at, ".hidden.json", "no dashboard");
    write(at, "broken.json", "{");
    write(at, "field.json", r#"{"schema": 1, "title": "a", "variables": [], "panel": []}"#);
    write(at, "Upper Case.json", &titled("a"));
    write(at, "hosts.json", &titled("a"));
    write(at, "grafana.json", r#"{"title": "a", "schemaVersion": 39, "panels": []}"#);
    write(at, "large.json", &titled(&"x".repeat(BYTES_MAX)));
    fs::create_dir(at.join("folder.json")).unwrap();
    let (files, metrics) = (DashboardFiles::default(), Metrics::new().unwrap());
    files.load(at, &metrics);
    assert_eq!(names(&files), ["saved", "web"]);
    let expected = [
        ("Upper Case.json", "a-z"),
        ("broken.json", "line 1"),
        ("field.json", "panel"),
        ("folder.json", "not a file"),
        ("grafana.json", "import it in /dashboards"),
        ("hosts.json", "built in"),
        ("large.json", "262144 bytes"),
    ];
    let found = faults(&files);
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for ((file, message), (expected_file, part)) in found.iter().zip(expected) {
        assert_eq!(file, expected_file);
        assert!(message.contains(part), "{file}: {message}");
    }
    assert_eq!((metrics.dashboards.files.get(), metrics.dashboards.files_failed.get()), (2, 7));
}

#[test]
fn changes_are_noticed_and_a_missing_folder_is_a_fault() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("dashboards");
    let (files, metrics) = (DashboardFiles::default(), Metrics::new().unwrap());
    files.load(Path::new(""), &metrics);
    files.load_changed(&metrics);
    assert_eq!((names(&files), faults(&files)), (vec![], vec![]));
    files.load(&at, &metrics);
    assert_eq!(faults(&files)[0].0, "server.dashboards_dir");
    fs::create_dir(&at).unwrap();
    write(&at, "a.json", &titled("A"));
    files.load_changed(&metrics);
    assert_eq!((names(&files), faults(&files)), (vec!["a".to_owned()], vec![]));
    // A check without a change keeps the dashboards in use.
    let before = files.get();
    files.load_changed(&metrics);
    assert!(Arc::ptr_eq(&before, &files.get()));
    write(&at, "b.json", &titled("B"));
    fs::remove_file(at.join("a.json")).unwrap();
    files.load_changed(&metrics);
    assert_eq!(names(&files), ["b"]);
    // A folder that is no longer set provides no dashboards.
    files.load(Path::new(""), &metrics);
    assert_eq!(names(&files), [""; 0]);
}

#[test]
fn all_files_together_have_a_limit() {
    let folder = tempfile::tempdir().unwrap();
    // A dashboard can contain white space up to its maximum size.
    let text = format!("{}{}", titled("A"), " ".repeat(BYTES_MAX - titled("A").len()));
    let fitting = (ALL_BYTES_MAX / BYTES_MAX as u64) as usize;
    for index in 0..=fitting {
        write(folder.path(), &format!("a{index:03}.json"), &text);
    }
    let (files, metrics) = (DashboardFiles::default(), Metrics::new().unwrap());
    files.load(folder.path(), &metrics);
    assert_eq!(names(&files).len(), fitting);
    let [(file, message)] = &faults(&files)[..] else { panic!("{:?}", faults(&files)) };
    assert_eq!(file, &format!("a{fitting:03}.json"));
    assert!(message.contains("all files"), "{message}");
}

#[test]
fn a_pipe_in_place_of_a_listed_file_is_a_fault() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "web.json", &titled("Web"));
    let listing = Listing::read(folder.path());
    let path = folder.path().join("web.json");
    fs::remove_file(&path).unwrap();
    mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let set = listing.file_set();
    assert!(set.dashboards.is_empty());
    assert!(set.faults[0].message.contains("not a file"), "{:?}", set.faults);
}
