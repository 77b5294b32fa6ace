//! Rounds of the source, with a program in place of smartctl that answers from files.

use std::{fs, path::Path};

use super::{
    report::tests::{ATA, refusal},
    *,
};

/// Writes the program: it appends its arguments to `calls`, and prints the file of the device.
fn smart(folder: &Path) -> Smart {
    let (text, program) = (folder.join("text"), folder.join("smartctl"));
    let script = format!(
        "#!/bin/sh\ncd {}\necho \"$*\" >> calls\nfor last; do :; done\n\
         [ \"$last\" = --scan ] && exec cat scan\nexec cat \"$(basename \"$last\")\"\n",
        folder.display()
    );
    fs::write(&text, script).unwrap();
    // Another process writes the program: while a thread of this one starts a process, that process
    // has all open files, and a program that is open for writing cannot run.
    let installed = Command::new("install").args(["-m", "755"]).args([&text, &program]).status();
    assert!(installed.unwrap().success());
    Smart { programs: vec![program], ..Smart::new(Arc::new(Host::for_tests())) }
}

fn write_scan(folder: &Path, devices: &[(&str, &str)]) {
    let device = |(name, kind): &(&str, &str)| format!(r#"{{"name":"{name}","type":"{kind}"}}"#);
    let devices: Vec<String> = devices.iter().map(device).collect();
    fs::write(folder.join("scan"), format!(r#"{{"devices":[{}]}}"#, devices.join(","))).unwrap();
}

/// Returns the values by metric and by the tag `disk` or `reason`, and the problem.
fn sample(smart: &mut Smart, now_ms: i64) -> (BTreeMap<String, f64>, Option<String>) {
    let mut readings = Readings::default();
    let problem = smart.sample(now_ms, &mut readings).err().map(|cause| cause.to_string());
    let values = readings.as_slice().iter().map(|reading| {
        let tag = reading.tags.iter().find(|(key, _)| key != "host");
        let tag = tag.map_or("", |(_, value)| value);
        let metric = reading.metric.trim_start_matches("system_disk_smart_");
        (format!("{metric} {tag}"), reading.value)
    });
    (values.collect(), problem)
}

#[test]
fn each_round_queries_one_disk_and_repeats_the_values_of_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut smart = smart(folder);
    write_scan(folder, &[("/dev/sda", "scsi"), ("/dev/bus/0", "megaraid,3")]);
    fs::write(folder.join("sda"), ATA).unwrap();
    fs::write(folder.join("0"), r#"{"smartctl":{"exit_status":0},"temperature":{"current":30}}"#)
        .unwrap();
    let (first, problem) = sample(&mut smart, 1000);
    assert_eq!((first["healthy sda"], first["pending_sectors sda"]), (0.0, 8.0));
    assert_eq!((first.get("temperature bus/0 megaraid,3"), problem), (None, None));
    let (second, _) = sample(&mut smart, 11_000);
    assert_eq!((second["temperature sda"], second["temperature bus/0 megaraid,3"]), (38.0, 30.0));
    let (third, _) = sample(&mut smart, 21_000);
    assert_eq!(third, second);
    let calls = fs::read_to_string(folder.join("calls")).unwrap();
    let options = "--json=c --info --health --attributes --nocheck=standby,0";
    let expected = [
        "--json=c --scan".to_owned(),
        format!("{options} -- /dev/sda"),
        format!("{options} --device=megaraid,3 -- /dev/bus/0"),
    ];
    assert_eq!(calls.lines().collect::<Vec<_>>(), expected);
}

/// Long rounds once queried only the first disks of the list.
#[test]
fn more_disks_than_rounds_of_an_interval_take_turns() {
    let folder = tempfile::tempdir().unwrap();
    let mut smart = smart(folder.path());
    write_scan(folder.path(), &[("/dev/sda", "sat"), ("/dev/sdb", "sat"), ("/dev/sdc", "sat")]);
    for disk in ["sda", "sdb", "sdc"] {
        fs::write(folder.path().join(disk), ATA).unwrap();
    }
    let turns = |smart: &mut Smart, times: [i64; 6]| {
        fs::write(folder.path().join("calls"), "").unwrap();
        for now_ms in times {
            sample(smart, now_ms);
        }
        let calls = fs::read_to_string(folder.path().join("calls")).unwrap();
        let disks = calls.lines().filter_map(|call| call.split_once("-- /dev/"));
        disks.map(|(_, disk)| disk.to_owned()).collect::<Vec<_>>()
    };
    let round_ms = QUERY_INTERVAL_MS / 2;
    let rounds = [0, 1, 2, 3, 4, 5];
    let expected = ["sda", "sdb", "sdc", "sda", "sdb", "sdc"];
    assert_eq!(turns(&mut smart, rounds.map(|round| 100 * round_ms + round * round_ms)), expected);
    // The clock is set back.
    let expected = ["sdc", "sdb", "sda", "sdc", "sdb", "sda"];
    assert_eq!(turns(&mut smart, rounds.map(|round| round * round_ms)), expected);
}

#[test]
fn a_disk_is_queried_again_after_the_interval_and_keeps_its_values_while_it_sleeps() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut smart = smart(folder);
    write_scan(folder, &[("/dev/sda", "sat")]);
    fs::write(folder.join("sda"), ATA).unwrap();
    let (awake, _) = sample(&mut smart, 1000);
    fs::write(folder.join("sda"), refusal("Device is in STANDBY mode, exit(0)", 0)).unwrap();
    let (mut asleep, problem) = sample(&mut smart, 1000 + QUERY_INTERVAL_MS);
    assert_eq!((asleep.get("temperature sda"), problem), (None, None), "it cools down");
    asleep.insert("temperature sda".to_owned(), awake["temperature sda"]);
    assert_eq!(asleep, awake);
    let calls = fs::read_to_string(folder.join("calls")).unwrap();
    assert_eq!(calls.lines().count(), 4, "{calls}");
    write_scan(folder, &[]);
    let (gone, _) = sample(&mut smart, 1000 + 2 * QUERY_INTERVAL_MS);
    assert!(!gone.contains_key("healthy sda"), "{gone:?}");
}

/// A dying disk once kept its last `healthy` forever.
#[test]
fn a_disk_that_stops_answering_loses_its_values() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut smart = smart(folder);
    write_scan(folder, &[("/dev/sda", "sat")]);
    fs::write(folder.join("sda"), ATA).unwrap();
    assert!(sample(&mut smart, 1000).0.contains_key("healthy sda"));
    fs::write(folder.join("sda"), refusal("Read SMART Data failed", 4)).unwrap();
    let (values, problem) = sample(&mut smart, 1000 + QUERY_INTERVAL_MS);
    assert_eq!((values["failures failed"], values.get("healthy sda")), (1.0, None));
    assert!(problem.is_some_and(|problem| problem.ends_with("Read SMART Data failed")));
}

#[test]
fn values_expire_while_the_list_of_disks_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut smart = smart(folder);
    write_scan(folder, &[("/dev/sda", "sat")]);
    fs::write(folder.join("sda"), ATA).unwrap();
    sample(&mut smart, 0);
    fs::write(folder.join("sda"), refusal("Device is in STANDBY mode, exit(0)", 0)).unwrap();
    fs::write(folder.join("scan"), "").unwrap();
    let is_present = |smart: &mut Smart, now_ms: i64| {
        sample(smart, now_ms).0.contains_key("pending_sectors sda")
    };
    assert!(is_present(&mut smart, QUERY_INTERVAL_MS));
    assert!(is_present(&mut smart, 2 * QUERY_INTERVAL_MS));
    assert!(!is_present(&mut smart, 2 * QUERY_INTERVAL_MS + 1));
    write_scan(folder, &[("/dev/sda", "sat")]);
    assert!(is_present(&mut smart, 3 * QUERY_INTERVAL_MS), "a sleeping disk");
}

#[test]
fn a_missing_permission_is_one_problem_and_a_count_and_memory_sticks_are_only_counted() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut smart = smart(folder);
    write_scan(folder, &[("/dev/sda", "scsi"), ("/dev/nvme0", "nvme"), ("/dev/sdb", "scsi")]);
    let denied =
        |disk: &str| refusal(&format!("Smartctl open device: {disk} failed: Permission denied"), 2);
    fs::write(folder.join("sda"), denied("/dev/sda")).unwrap();
    fs::write(folder.join("nvme0"), denied("/dev/nvme0")).unwrap();
    fs::write(folder.join("sdb"), refusal("/dev/sdb: Unknown USB bridge", 1)).unwrap();
    let mut readings = Readings::default();
    let problem = smart.sample_alone(1000, &mut readings).unwrap_err().to_string();
    assert_eq!(
        problem,
        "2 of 3 disks have no report of smartctl: Smartctl open device: /dev/sda failed: \
         Permission denied; root may read it"
    );
    let (values, later) = sample(&mut smart, 2000);
    assert_eq!(later.as_deref(), Some(problem.as_str()), "the problem lasts between queries");
    let counts = ["permission", "unsupported", "failed"];
    let counts = counts.map(|reason| values[&format!("failures {reason}")]);
    assert_eq!((counts, values.len()), ([2.0, 1.0, 0.0], 3));
}

#[test]
fn without_smartctl_there_are_no_series_and_a_broken_one_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let mut smart = smart(folder.path());
    fs::write(folder.path().join("scan"), "smartctl 6.6").unwrap();
    let (values, problem) = sample(&mut smart, 1000);
    assert_eq!(values["failures failed"], 1.0);
    assert!(problem.is_some_and(|problem| problem.starts_with("smartctl --scan: ")));
    smart.programs.clear();
    assert_eq!(sample(&mut smart, 2000), (BTreeMap::new(), None));
}

#[test]
fn disks_beyond_the_maximum_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let mut smart = smart(folder.path());
    let names: Vec<String> = (0..=DISKS_MAX).map(|number| format!("/dev/d{number}")).collect();
    let devices: Vec<_> = names.iter().map(|name| (name.as_str(), "scsi")).collect();
    write_scan(folder.path(), &devices);
    fs::write(folder.path().join("d0"), ATA).unwrap();
    let (_, problem) = sample(&mut smart, 1000);
    assert_eq!(problem.as_deref(), Some("1 of 65 disks are omitted"));
}
