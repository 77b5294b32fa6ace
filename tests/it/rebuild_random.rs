//! Random damage of coarser granularities: after a rebuild, a store equals its undamaged twin, even
//! after both received more late samples.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use fastrand::Rng;
use granary::{
    model::{AcceptedBatch, Kind, SeriesId},
    store::{Appender, Folder, Medium, RebuildWork, rebuild, verify},
};

use crate::{
    rebuild::cells,
    setup::{HOUR, NOW, define, open, send, series},
};

/// The number of random histories.
const HISTORIES: u64 = 10;

/// Sends samples of random times of the last `hours` hours, in any order.
fn send_random(appender: &mut Appender, rng: &mut Rng, (count, hours): (usize, i64)) {
    for _ in 0..count {
        let at = NOW.0 - rng.i64(0..hours * HOUR);
        // Sums of quarters do not depend on their order.
        let values = vec![
            f64::from(rng.u32(..4000)) / 4.0,
            (at / 1000 % 1_000_000) as f64,
            f64::from(rng.u32(..4)),
        ];
        let series = (0..3).map(SeriesId).collect();
        let batch = AcceptedBatch { series, times: vec![at], values, ..AcceptedBatch::default() };
        send(appender, batch, NOW);
    }
}

/// Fills a store; the same seed gives the same store.
fn fill(dir: &Path, seed: u64) {
    let mut rng = Rng::with_seed(seed);
    let (store, mut appender) = open(dir, NOW);
    store.set_segment_documents_min(if rng.bool() { 1 } else { 512 });
    let all_series = Kind::OF_NUMBERS.map(|kind| series(kind.as_str(), &[("host", "a")], kind));
    define(&mut appender, &all_series, NOW);
    for _ in 0..rng.usize(2..5) {
        let samples = (rng.usize(20..200), rng.i64(2..40));
        send_random(&mut appender, &mut rng, samples);
        store.checkpoint(NOW).unwrap();
        if rng.bool() {
            store.seal(NOW, 0, &|_| true).unwrap();
        }
    }
    send_random(&mut appender, &mut rng, (30, 3));
}

/// Damages or removes a random file of a coarser granularity; returns a description.
fn damage(dir: &Path, rng: &mut Rng) -> String {
    let levels = ["5m", "1h", "1d"];
    let folders = levels.iter().map(|level| dir.join("partitions").join(level));
    let list = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten();
    let mut files: Vec<_> = folders.flat_map(list).map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let file = rng.choice(&files).unwrap();
    let mut bytes = fs::read(file).unwrap();
    let action = match rng.u8(..3) {
        0 => {
            fs::remove_file(file).unwrap();
            "removed"
        }
        1 => {
            bytes.truncate(rng.usize(..bytes.len()));
            fs::write(file, bytes).unwrap();
            "cut"
        }
        _ => {
            // redb verifies a flipped bit of its pages only when it repairs a file.
            let is_segment = file.extension().is_some_and(|end| end == "sealed");
            let at = if is_segment { rng.usize(..bytes.len()) } else { 0 };
            bytes[at] ^= 1 << rng.u8(..8);
            fs::write(file, bytes).unwrap();
            "flipped a bit of"
        }
    };
    format!("{action} {}", file.display())
}

#[test]
fn a_rebuilt_store_is_the_same_as_one_that_was_never_damaged() {
    for seed in 0..HISTORIES {
        let (twin, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fill(twin.path(), seed);
        fill(dir.path(), seed);
        let mut rng = Rng::with_seed(seed ^ 0xda5a_6e00);
        let damages: Vec<_> = (0..rng.u8(1..4)).map(|_| damage(dir.path(), &mut rng)).collect();
        let medium: Arc<dyn Medium> = Arc::new(Folder::new(dir.path()).unwrap());
        let report = rebuild(&medium, &RebuildWork::all(), NOW, &mut |_| {}).unwrap();
        let context = || format!("seed {seed}: {damages:?}: {report:#?}");
        let verified = verify(dir.path(), NOW, &mut |_| {}).unwrap();
        assert_eq!(verified.faults, [], "{}", context());
        let [(twin, mut twin_appender), (store, mut appender)] =
            [twin.path(), dir.path()].map(|dir| open(dir, NOW));
        assert!(cells(&store) == cells(&twin), "{}", context());
        let late_seed = rng.u64(..);
        for appender in [&mut twin_appender, &mut appender] {
            send_random(appender, &mut Rng::with_seed(late_seed), (50, 45));
        }
        assert!(cells(&store) == cells(&twin), "late, {}", context());
        for store in [&store, &twin] {
            store.checkpoint(NOW).unwrap();
        }
        assert!(cells(&store) == cells(&twin), "late and checkpointed, {}", context());
    }
}
