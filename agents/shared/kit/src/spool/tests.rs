//! Tests of the spool's order, limits and durability.

use granary_protocol::decode_batch;
use redb::{ReadableDatabase, ReadableTable, ReadableTableMetadata};

use super::*;

fn batch(values: usize) -> Batch {
    Batch {
        agent: "a".to_owned(),
        refs: (0..values as u32).collect(),
        times: vec![1000],
        values: vec![1.0; values],
        ..Batch::default()
    }
}

fn definition(reference: u32) -> SeriesDefinition {
    SeriesDefinition {
        reference,
        metric: format!("metric{reference}"),
        tags: vec![("host".to_owned(), "a".to_owned())],
        kind: granary_protocol::Kind::Counter,
        unit: "bytes".to_owned(),
    }
}

fn open_spool(folder: &Path, bytes_max: u64, now_ms: i64) -> Spool {
    Spool::open(folder, "a", bytes_max, now_ms).unwrap()
}

const MINUTE: Duration = Duration::from_secs(60);

fn waiting_seqs(spool: &Spool) -> Vec<u64> {
    let seqs = spool.fetch(1000, usize::MAX).unwrap().iter().map(|batch| batch.seq).collect();
    spool.release();
    seqs
}

const LARGE_BYTES_MAX: u64 = 1 << 30;

#[test]
fn batches_are_fetched_oldest_first_and_removed_when_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let spool = open_spool(folder.path(), LARGE_BYTES_MAX, 5);
    for _ in 0..5 {
        spool.append(&mut batch(3)).unwrap();
    }
    assert_eq!(waiting_seqs(&spool), [1, 2, 3, 4, 5]);
    spool.acknowledge(&[1, 2, 3]).unwrap();
    assert_eq!(waiting_seqs(&spool), [4, 5]);
    assert_eq!(spool.usage().batches, 2);
    spool.acknowledge(&[4, 5, 5]).unwrap();
    assert_eq!(spool.usage(), SpoolUsage::default(), "bytes are counted down to zero");
}

#[test]
fn a_fetch_is_limited_but_returns_at_least_one_batch() {
    let folder = tempfile::tempdir().unwrap();
    let spool = open_spool(folder.path(), LARGE_BYTES_MAX, 5);
    for _ in 0..10 {
        spool.append(&mut batch(100)).unwrap();
    }
    let bytes = spool.fetch(1, usize::MAX).unwrap()[0].bytes.len();
    assert_eq!(spool.fetch(3, usize::MAX).unwrap().len(), 3);
    assert_eq!(spool.fetch(64, bytes * 4 + 1).unwrap().len(), 4);
    assert_eq!(spool.fetch(64, 1).unwrap().len(), 1);
}

#[test]
fn epoch_numbers_and_definitions_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let spool = open_spool(folder.path(), LARGE_BYTES_MAX, 5);
    let mut first = Batch { series: vec![definition(0), definition(7)], ..batch(1) };
    spool.append(&mut first).unwrap();
    assert_eq!((first.epoch, first.seq), (5, 1));
    drop(spool);

    let spool = open_spool(folder.path(), LARGE_BYTES_MAX, 99);
    assert_eq!(spool.epoch(), 5);
    let mut all = Vec::new();
    spool.each_definition(|definition| all.push(definition)).unwrap();
    assert_eq!(all, [definition(0), definition(7)]);
    let wanted = BTreeSet::from([7, 8]);
    let found: Vec<_> = spool.definitions(&wanted).unwrap().into_values().collect();
    assert_eq!(found, [definition(7)]);
    spool.acknowledge(&[1]).unwrap();
    drop(spool);

    // Numbers are not reused although the spool is empty.
    let spool = open_spool(folder.path(), LARGE_BYTES_MAX, 100);
    let mut next = batch(1);
    spool.append(&mut next).unwrap();
    assert_eq!((next.epoch, next.seq), (5, 2));
    let stored = spool.fetch(1, 1).unwrap();
    let view = decode_batch(&stored[0].bytes).unwrap();
    assert_eq!((view.epoch, view.seq), (5, 2));
}

#[test]
fn a_full_spool_drops_and_counts_the_oldest_batches() {
    let folder = tempfile::tempdir().unwrap();
    let bytes_of_one = {
        let sample_folder = tempfile::tempdir().unwrap();
        let spool = open_spool(sample_folder.path(), LARGE_BYTES_MAX, 5);
        spool.append(&mut batch(10)).unwrap();
        spool.usage().bytes
    };
    let spool = open_spool(folder.path(), bytes_of_one * 3, 5);
    let dropped: Vec<_> = (0..5)
        .map(|_| spool.append(&mut batch(10)).unwrap())
        .map(|appended| (appended.dropped_batches, appended.dropped_samples))
        .collect();
    assert_eq!(dropped, [(0, 0), (0, 0), (0, 0), (1, 10), (1, 10)]);
    assert_eq!(waiting_seqs(&spool), [3, 4, 5]);
    assert_eq!(spool.usage(), SpoolUsage { batches: 3, bytes: bytes_of_one * 3 });
}

#[test]
fn batches_in_a_request_are_not_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let spool = open_spool(folder.path(), 1, 5);
    spool.append(&mut batch(1)).unwrap();
    assert_eq!(spool.fetch(1, 1).unwrap()[0].seq, 1);
    assert_eq!(spool.append(&mut batch(1)).unwrap().dropped_batches, 0);
    assert_eq!(spool.append(&mut batch(1)).unwrap().dropped_batches, 1, "the batch between");
    spool.release();
    assert_eq!(spool.append(&mut batch(1)).unwrap().dropped_batches, 2);
    assert_eq!(waiting_seqs(&spool), [4], "the newest batch stays even when it alone is too large");
}

#[test]
fn the_file_stays_near_its_limit_while_no_batch_is_delivered() {
    let folder = tempfile::tempdir().unwrap();
    let bytes_max = 4 * 1024 * 1024;
    let spool = open_spool(folder.path(), bytes_max, 5);
    for _ in 0..400 {
        spool.append(&mut batch(2000)).unwrap();
    }
    let usage = spool.usage();
    assert!(usage.bytes <= bytes_max && usage.bytes > bytes_max - 100_000, "{usage:?}");
    let file = fs::metadata(folder.path().join(FILE)).unwrap().len();
    assert!(file < bytes_max * 5 / 2, "a file of {file} bytes for a limit of {bytes_max}");
}

#[test]
fn a_damaged_file_is_set_aside_and_a_new_epoch_begins() {
    let folder = tempfile::tempdir().unwrap();
    let spool = open_spool(folder.path(), LARGE_BYTES_MAX, 5);
    spool.append(&mut batch(1)).unwrap();
    drop(spool);
    fs::write(folder.path().join(FILE), b"this is no database").unwrap();

    let spool = open_spool(folder.path(), LARGE_BYTES_MAX, 6);
    assert_eq!(spool.epoch(), 6);
    assert_eq!(spool.usage(), SpoolUsage::default());
    assert_eq!(fs::read(folder.path().join(DAMAGED)).unwrap(), b"this is no database");
}

/// Regression: damage inside the pages made redb panic at each start, so that the agent never
/// started again, or the damage went unnoticed.
#[test]
fn damage_anywhere_in_the_pages_is_found_when_the_spool_is_opened() {
    let sound = tempfile::tempdir().unwrap();
    let spool = open_spool(sound.path(), LARGE_BYTES_MAX, 5);
    for _ in 0..40 {
        spool.append(&mut batch(300)).unwrap();
    }
    drop(spool);
    let bytes = fs::read(sound.path().join(FILE)).unwrap();
    let used = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    let mut set_aside = 0;
    for seed in 0..20 {
        let mut state: u64 = seed;
        let mut random = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let mut damaged = bytes.clone();
        // The whole file except the header, which contains copies of its fields.
        for _ in 0..200 {
            damaged[4096 + random(used - 4096)] ^= 1 + random(255) as u8;
        }
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(FILE), &damaged).unwrap();
        let spool = open_spool(folder.path(), LARGE_BYTES_MAX, 6);
        set_aside += u32::from(folder.path().join(DAMAGED).exists());
        let seq = spool.append(&mut batch(1)).unwrap().seq;
        let fetched = spool.fetch(1000, usize::MAX).unwrap();
        assert_eq!(fetched.last().unwrap().seq, seq, "seed {seed}");
        for stored in &fetched[..fetched.len() - 1] {
            let view = decode_batch(&stored.bytes).unwrap();
            assert!(view.values().all(|value| value == 1.0), "seed {seed}: damage is delivered");
        }
    }
    assert!(set_aside > 0, "no seed damaged the file");
}

#[test]
fn two_agents_cannot_share_a_spool() {
    let folder = tempfile::tempdir().unwrap();
    let _spool = open_spool(folder.path(), LARGE_BYTES_MAX, 5);
    let second = Spool::open(folder.path(), "a", LARGE_BYTES_MAX, 6);
    assert!(matches!(second, Err(SpoolError::InUse { .. })), "{second:?}");
    assert!(folder.path().join(FILE).exists(), "the file of the first agent is not set aside");
}

#[test]
fn rejected_batches_leave_the_queue_and_are_kept_up_to_a_bound() {
    let folder = tempfile::tempdir().unwrap();
    let spool = open_spool(folder.path(), LARGE_BYTES_MAX, 5);
    for _ in 0..REJECTED_BATCHES_MAX + 2 {
        let appended = spool.append(&mut batch(1)).unwrap();
        spool.reject(appended.seq).unwrap();
    }
    assert_eq!(spool.usage(), SpoolUsage::default());
    let state = spool.state();
    let txn = state.disk.db.as_ref().unwrap().begin_read().unwrap();
    let rejected = txn.open_table(tables::REJECTED).unwrap();
    assert_eq!(rejected.len().unwrap(), REJECTED_BATCHES_MAX);
    assert_eq!(rejected.first().unwrap().unwrap().0.value(), 3, "the oldest batches are removed");
}

#[test]
fn expired_batches_are_dropped_with_the_next_batch() {
    let folder = tempfile::tempdir().unwrap();
    let spool =
        open_spool(folder.path(), LARGE_BYTES_MAX, 5).with_age_max(Some(Duration::from_secs(60)));
    let append_at = |seconds: i64| {
        let mut batch = Batch { times: vec![seconds * 1000], ..batch(3) };
        spool.append(&mut batch).unwrap()
    };
    for seconds in [100, 110, 160] {
        assert_eq!(append_at(seconds).dropped_batches, 0);
    }
    let appended = append_at(171);
    assert_eq!((appended.dropped_batches, appended.dropped_samples), (2, 6));
    assert_eq!(waiting_seqs(&spool), [3, 4]);
}

#[test]
fn the_newest_batches_are_fetched_only_within_the_span_of_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let spool = open_spool(folder.path(), LARGE_BYTES_MAX, 5);
    for _ in 0..10 {
        spool.append(&mut batch(3)).unwrap();
    }
    let newest = |count, span| -> Vec<u64> {
        let fetched = spool.fetch_newest(count, usize::MAX, span).unwrap();
        fetched.iter().map(|batch| batch.seq).collect()
    };
    assert_eq!(newest(3, 9..20), [8, 9, 10]);
    assert_eq!(newest(3, 10..20), [] as [u64; 0]);
    assert_eq!(newest(3, 5..9), [] as [u64; 0]);
    spool.acknowledge(&(1..=10).collect::<Vec<_>>()).unwrap();
    assert_eq!(newest(3, 1..20), [] as [u64; 0]);
}

/// Regression: rounds that the daemon accepts at once cost five syncs each.
#[test]
fn batches_that_the_daemon_accepts_at_once_never_reach_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let spool = open_spool(folder.path(), LARGE_BYTES_MAX, 5).with_linger(MINUTE);
    let file = || fs::metadata(folder.path().join(FILE)).unwrap().modified().unwrap();
    spool.append(&mut batch(1)).unwrap();
    let written = file();
    spool.acknowledge(&[1]).unwrap();
    for seq in 2..100 {
        spool.append(&mut batch(3)).unwrap();
        assert_eq!(fetched_seqs(&spool), [seq]);
        spool.acknowledge(&[seq]).unwrap();
    }
    assert_eq!(file(), written);
    assert_eq!(spool.usage(), SpoolUsage::default());
    // After a failed delivery, everything is written at once.
    spool.append(&mut batch(3)).unwrap();
    assert_eq!(file(), written);
    spool.release();
    assert!(file() > written);
}

/// Makes writes fail until the path of the file is restored.
fn break_disk(spool: &Spool, folder: &Path) {
    let mut state = spool.state();
    state.disk.db = None;
    state.disk.path = folder.to_owned();
}

/// Regression: the agent ended with `No space left on device`.
#[test]
fn while_the_file_cannot_be_written_the_newest_batches_stay_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let spool = open_spool(folder.path(), LARGE_BYTES_MAX, 5);
    spool.append(&mut batch(1)).unwrap();
    break_disk(&spool, folder.path());
    let (mut appended, mut dropped) = (1, 0);
    while dropped < 3 {
        let outcome = spool.append(&mut batch(20_000)).unwrap();
        appended += 1;
        dropped += outcome.dropped_batches;
        assert!(appended < 1_000 && outcome.dropped_samples == outcome.dropped_batches * 20_000);
    }
    assert!(spool.usage().bytes <= state::MEMORY_BYTES_MAX as u64 + 1_000_000);
    assert_eq!(spool.usage().batches, appended - dropped);
    let waiting = fetched_seqs(&spool);
    assert_eq!(waiting.last(), Some(&appended), "the newest batch is kept");
    spool.acknowledge(&waiting[..2]).unwrap();
    spool.state().disk.path = folder.path().join(FILE);
    spool.append(&mut batch(1)).unwrap();
    drop(spool);
    let spool = open_spool(folder.path(), LARGE_BYTES_MAX, 6);
    let mut expected = vec![1];
    expected.extend(waiting[2..].iter().copied().chain([appended + 1]));
    assert_eq!(waiting_seqs(&spool), expected);
}

fn fetched_seqs(spool: &Spool) -> Vec<u64> {
    spool.fetch(1000, usize::MAX).unwrap().iter().map(|batch| batch.seq).collect()
}

#[test]
fn batches_in_memory_survive_a_stop_and_no_number_is_reused_after_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let spool = open_spool(folder.path(), LARGE_BYTES_MAX, 5).with_linger(MINUTE);
    for _ in 0..3 {
        spool.append(&mut batch(3)).unwrap();
    }
    // A crash leaves the file without the batches in memory.
    let crashed = tempfile::tempdir().unwrap();
    fs::copy(folder.path().join(FILE), crashed.path().join(FILE)).unwrap();
    drop(spool);
    let spool = open_spool(folder.path(), LARGE_BYTES_MAX, 6);
    assert_eq!(waiting_seqs(&spool), [1, 2, 3]);
    assert_eq!(spool.append(&mut batch(1)).unwrap().seq, 4, "reserved numbers are released");
    let spool = open_spool(crashed.path(), LARGE_BYTES_MAX, 6);
    assert!(spool.append(&mut batch(1)).unwrap().seq > 3);
}

#[test]
fn new_series_are_on_disk_before_their_batch_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let spool = open_spool(folder.path(), LARGE_BYTES_MAX, 5).with_linger(MINUTE);
    for reference in 0..3 {
        spool.append(&mut Batch { series: vec![definition(reference)], ..batch(1) }).unwrap();
        let mut on_disk = 0;
        spool.state().disk.each_definition(|_| on_disk += 1).unwrap();
        assert_eq!(on_disk, reference + 1);
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(40))]

    /// After any sequence of operations, a spool with a linger time contains the same batches as a
    /// spool that writes each batch.
    #[test]
    fn memory_and_file_act_as_one_queue(steps in proptest::collection::vec((0_u8..6, 1_usize..20), 1..40)) {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let bytes_max = 3000;
        let mut direct = open_spool(first.path(), bytes_max, 5);
        let mut lingers = open_spool(second.path(), bytes_max, 5).with_linger(MINUTE);
        for (step, size) in steps {
            let both = [&direct, &lingers];
            match step {
                0..=2 => {
                    let [a, b] = both.map(|spool| spool.append(&mut batch(size)).unwrap());
                    proptest::prop_assert_eq!(a, b);
                }
                3 => both.iter().for_each(|spool| {
                    let fetched = spool.fetch(size, usize::MAX).unwrap();
                    let seqs: Vec<u64> = fetched.iter().map(|batch| batch.seq).collect();
                    spool.acknowledge(&seqs).unwrap();
                }),
                4 => both.iter().for_each(|spool| {
                    let newest = spool.fetch_newest(size, usize::MAX, 0..900).unwrap();
                    let seqs: Vec<u64> = newest.iter().map(|batch| batch.seq).collect();
                    spool.acknowledge(&seqs).unwrap();
                }),
                _ => {
                    drop((direct, lingers));
                    direct = open_spool(first.path(), bytes_max, 5);
                    lingers = open_spool(second.path(), bytes_max, 5).with_linger(MINUTE);
                }
            }
            let [a, b] = [&direct, &lingers].map(|spool| {
                let all = fetched_seqs(spool);
                spool.acknowledge(&[]).unwrap();
                all
            });
            proptest::prop_assert_eq!(a, b);
            proptest::prop_assert_eq!(direct.usage(), lingers.usage());
        }
    }
}
