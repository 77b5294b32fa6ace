//! Tests of which files are read, refused and skipped.

use super::*;
use crate::config;

#[test]
fn folders_and_patterns_select_files_and_the_error_names_a_bad_file() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let rules = |name: &str| format!("groups:\n- name: {name}\n");
    fs::write(at("b.yml"), rules("b")).unwrap();
    fs::write(at("a.yaml"), rules("a")).unwrap();
    fs::write(at("c.rules"), rules("c")).unwrap();
    let settings = config::load(None, &config::Overrides::default()).unwrap();
    let read = |paths: &[PathBuf]| {
        let paths = paths.iter().map(|path| path.to_string_lossy().into_owned()).collect();
        let set = RuleSources { paths, interval_ms: 60_000, ..RuleSources::default() }
            .read(&settings.promql_settings());
        let names = |set: RuleSet| {
            let groups = set.groups.into_iter();
            groups.map(|group| group.name).collect::<Vec<_>>().join(" ")
        };
        set.map(names).map_err(|cause| cause.to_string())
    };
    assert_eq!(read(&[folder.path().to_owned()]), Ok("a b".to_owned()));
    assert_eq!(read(&[at("*.rules"), at("a.yaml"), at("a.*")]), Ok("a c".to_owned()));
    assert_eq!(read(&[at("*.none")]), Ok(String::new()));
    assert!(read(&[at("none.yml")]).unwrap_err().contains("none.yml"));
    fs::write(at("b.yml"), "groups:\n- nam: b\n").unwrap();
    let message = read(&[folder.path().to_owned()]).unwrap_err();
    assert!(message.contains("b.yml") && message.contains("nam"), "{message}");
}

#[test]
fn an_slo_of_two_files_is_refused_in_the_second_one() {
    let folder = tempfile::tempdir().unwrap();
    let slo = "slos: [{name: shop, target: 99, good: 'increase(a[$window])', total: \
               'increase(b[$window])'}]\n";
    for name in ["a.yml", "b.yml"] {
        fs::write(folder.path().join(name), slo).unwrap();
    }
    let settings = config::load(None, &config::Overrides::default()).unwrap();
    let paths = vec![folder.path().display().to_string()];
    let sources = RuleSources { paths, interval_ms: 60_000, ..RuleSources::default() };
    let (set, fault) = sources.read_usable(&settings.promql_settings());
    let files: Vec<_> = set.groups.iter().map(|group| group.file.as_str()).collect();
    assert_eq!(files, [folder.path().join("a.yml").display().to_string()]);
    assert_eq!(set.unread, [folder.path().join("b.yml")]);
    let message = fault.unwrap().to_string();
    for part in ["b.yml: slo \"shop\"", "a.yml declares it too"] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn a_digest_changes_with_the_rules_and_not_with_their_folder() {
    let [one, other] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let sources = |folder: &tempfile::TempDir| RuleSources {
        paths: vec![folder.path().display().to_string()],
        notifications: Some(folder.path().join("notifications.toml")),
        ..RuleSources::default()
    };
    let write = |folder: &tempfile::TempDir, name: &str, text: &str| {
        fs::write(folder.path().join(name), text).unwrap();
    };
    for folder in [&one, &other] {
        write(folder, "a.yml", "groups: []");
        write(folder, "b.yml", "groups: []");
    }
    let digest = sources(&one).digest();
    assert_eq!(sources(&other).digest(), digest);
    write(&other, "b.yml", "groups: [] ");
    assert_ne!(sources(&other).digest(), digest);
    write(&other, "b.yml", "groups: []");
    write(&other, "notifications.toml", "");
    assert_ne!(sources(&other).digest(), digest);
}

#[test]
fn skipped_rules_are_known_by_their_file_or_folder() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    fs::write(at("good.yml"), "groups:\n- name: g\n").unwrap();
    fs::write(at("bad.yml"), "groups:\n- nam: b\n").unwrap();
    let settings = config::load(None, &config::Overrides::default()).unwrap();
    let unread = |paths: &[String]| {
        let sources =
            RuleSources { paths: paths.to_vec(), interval_ms: 60_000, ..RuleSources::default() };
        let (set, _) = sources.read_usable(&settings.promql_settings());
        ["good.yml", "bad.yml", "gone/x.yml", "other.yml"].map(|name| set.is_unread(&at(name)))
    };
    assert_eq!(unread(&[at("good.yml")]), [false; 4]);
    assert_eq!(unread(&[at("*.yml"), at("gone")]), [false, true, true, false]);
    assert_eq!(unread(&[at("gone/*.yml"), at("good.yml")]), [false, false, true, false]);
    assert_eq!(unread(&[at("[")]), [true; 4]);
}
