//! A disk whose syncs stand still: what goes on meanwhile.

use std::{
    io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use actix::{Actor, System};
use granary::{
    actors::{CheckpointNow, Checkpointer, CheckpointerParts, Health, Stop, lifelines},
    clock::SystemClock,
    model::{
        AcceptedBatch, GranularityIndex, GranularitySet, Kind, SeriesId, SeriesInfo, SeriesKey,
        SeriesLimits, UnixMillis,
    },
    store::{Appender, CheckpointBounds, Folder, Medium, Store},
    telemetry::Metrics,
};
use parking_lot::{Condvar, Mutex};
use redb::StorageBackend;

/// 2026-11-21T06:00:00Z, when a partition of 1m begins.
const SIX: UnixMillis = UnixMillis(1_795_240_800_000);
const MINUTE: i64 = 60_000;
const DEADLINE: Duration = Duration::from_secs(30);
const SERIES: u32 = 200;

/// While it is closed, syncs of files whose name contains a word wait.
#[derive(Debug, Default)]
struct Gate {
    closed_for: Mutex<Option<&'static str>>,
    waiting: AtomicU64,
    changed: Condvar,
}

impl Gate {
    fn set(&self, closed_for: Option<&'static str>) {
        *self.closed_for.lock() = closed_for;
        self.changed.notify_all();
    }

    fn pass(&self, name: &str) {
        let mut closed_for = self.closed_for.lock();
        self.waiting.fetch_add(1, Ordering::SeqCst);
        self.changed.notify_all();
        self.changed.wait_while(&mut closed_for, |word| word.is_some_and(|w| name.contains(w)));
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }

    fn wait_until_one_waits(&self) {
        let mut closed_for = self.closed_for.lock();
        let nobody = |_: &mut Option<&str>| self.waiting.load(Ordering::SeqCst) == 0;
        let waited = self.changed.wait_while_for(&mut closed_for, nobody, DEADLINE);
        assert!(!waited.timed_out(), "nobody syncs");
    }
}

#[derive(Debug)]
struct Gated {
    folder: Folder,
    gate: Arc<Gate>,
}

#[derive(Debug)]
struct GatedFile {
    file: Box<dyn StorageBackend>,
    name: String,
    gate: Arc<Gate>,
}

impl StorageBackend for GatedFile {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.gate.pass(&self.name);
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.file.write(offset, data)
    }
}

impl Gated {
    fn wrap(&self, name: &str, file: Box<dyn StorageBackend>) -> Box<dyn StorageBackend> {
        Box::new(GatedFile { file, name: name.to_owned(), gate: self.gate.clone() })
    }
}

impl Medium for Gated {
    fn open(&self, name: &str) -> io::Result<Box<dyn StorageBackend>> {
        Ok(self.wrap(name, self.folder.open(name)?))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn StorageBackend>> {
        Ok(self.wrap(name, self.folder.create(name)?))
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        self.folder.list(folder)
    }

    fn folders(&self, folder: &str) -> io::Result<Vec<String>> {
        self.folder.folders(folder)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.folder.remove(name)
    }

    fn exists(&self, name: &str) -> io::Result<bool> {
        self.folder.exists(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.folder.rename(from, to)
    }

    fn settle(&self, name: &str) -> io::Result<()> {
        self.folder.settle(name)
    }

    fn allocated_bytes(&self, name: &str) -> io::Result<u64> {
        self.folder.allocated_bytes(name)
    }

    fn copy(&self, name: &str, target: &Path) -> io::Result<u64> {
        self.folder.copy(name, target)
    }
}

fn open(dir: &Path, gate: &Arc<Gate>) -> (Store, Appender) {
    let medium = Gated { folder: Folder::new(dir).unwrap(), gate: gate.clone() };
    let (store, appender, _) =
        Store::open(Arc::new(medium), GranularitySet::default(), SIX).unwrap();
    (store, appender)
}

fn define(appender: &mut Appender) {
    let limits = SeriesLimits::default();
    let definition = |index: u32| SeriesInfo {
        key: SeriesKey::new("events", [("n", index.to_string().as_str())], &limits).unwrap(),
        kind: Kind::Delta,
        unit: "".into(),
        sender: "".into(),
    };
    let definitions: Vec<_> = (0..SERIES).map(definition).collect();
    appender.commit(&definitions, &[], SIX).unwrap();
}

/// A sample of each series.
fn add(appender: &mut Appender, at: UnixMillis) {
    let batch = AcceptedBatch {
        series: (0..SERIES).map(SeriesId).collect(),
        times: vec![at.0],
        values: vec![1.0; SERIES as usize],
        ..AcceptedBatch::default()
    };
    appender.commit(&[], &[batch], at).unwrap();
}

fn count(store: &Store, level: usize, series: u32) -> u64 {
    let day = SIX.minus(6 * 60 * MINUTE)..SIX.plus(12 * 60 * MINUTE);
    let view = store.view(GranularityIndex(level), day, &[SeriesId(series)]).unwrap();
    view.slots(SeriesId(series)).unwrap().iter().map(|slot| u64::from(slot.cell.n)).sum()
}

#[test]
fn batches_and_queries_wait_for_no_sync_of_a_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let gate = Arc::new(Gate::default());
    let (store, mut appender) = open(dir.path(), &gate);
    define(&mut appender);
    add(&mut appender, SIX.plus(10 * MINUTE));
    let later = SIX.plus(125 * MINUTE);
    for word in ["partitions", "head"] {
        gate.set(Some(word));
        let checkpoint = {
            let store = store.clone();
            thread::spawn(move || store.checkpoint(later).map(|_| ()))
        };
        gate.wait_until_one_waits();
        let (done, ended) = mpsc::channel();
        let others = {
            let store = store.clone();
            thread::spawn(move || {
                let before = count(&store, 0, 7);
                add(&mut appender, later);
                assert_eq!(count(&store, 0, 7), before + 1);
                done.send(()).unwrap();
                appender
            })
        };
        assert_eq!(ended.recv_timeout(DEADLINE), Ok(()), "it waits for {word}");
        gate.set(None);
        checkpoint.join().unwrap().unwrap();
        appender = others.join().unwrap();
    }
    assert_eq!(count(&store, 0, 7), 3);
}

#[test]
fn views_during_checkpoints_hold_each_sample_once() {
    const BATCHES: u64 = 300;
    let dir = tempfile::tempdir().unwrap();
    let gate = Arc::new(Gate::default());
    let (store, mut appender) = open(dir.path(), &gate);
    define(&mut appender);
    let (sent, acknowledged) = (AtomicU64::new(0), AtomicU64::new(0));
    let is_over = AtomicBool::new(false);
    // Each batch is of a later minute, so that documents become due all the time.
    let time = |batch: u64| SIX.plus(batch as i64 * 2 * MINUTE);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                store.checkpoint(time(acknowledged.load(Ordering::SeqCst))).unwrap();
            }
        });
        for (level, series) in [(0, 3), (1, 70), (2, 140), (3, 199)] {
            let (store, sent, acknowledged, is_over) = (&store, &sent, &acknowledged, &is_over);
            scope.spawn(move || {
                while !is_over.load(Ordering::SeqCst) {
                    let least = acknowledged.load(Ordering::SeqCst);
                    let found = count(store, level, series);
                    let most = sent.load(Ordering::SeqCst);
                    assert!((least..=most).contains(&found), "{least} {found} {most}");
                }
            });
        }
        for batch in 1..=BATCHES {
            sent.store(batch, Ordering::SeqCst);
            add(&mut appender, time(batch));
            acknowledged.store(batch, Ordering::SeqCst);
        }
        is_over.store(true, Ordering::SeqCst);
    });
    drop((store, appender));
    let (store, _appender) = open(dir.path(), &gate);
    for level in 0..4 {
        assert_eq!([3, 70, 199].map(|series| count(&store, level, series)), [BATCHES; 3]);
    }
}

#[test]
fn what_would_not_fit_into_memory_is_refused_before_it_is_durable_and_fits_after_a_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = open(dir.path(), &Arc::new(Gate::default()));
    define(&mut appender);
    let bounds = CheckpointBounds { cell_bytes_max: 1 << 20, journal_bytes_max: 1 << 30 };
    // One series, each sample in a slot of its own.
    let backfill = |from: i64| AcceptedBatch {
        series: vec![SeriesId(SERIES - 1); 1000],
        times: (0..1000).map(|slot| SIX.0 - (from + slot) * MINUTE).collect(),
        values: vec![1.0; 1000],
        ..AcceptedBatch::default()
    };
    let mut taken = 0;
    loop {
        let batch = backfill(taken * 1000);
        if !store.room(&bounds, SIX).take(std::slice::from_ref(&batch)) {
            break;
        }
        appender.commit(&[], &[batch], SIX).unwrap();
        taken += 1;
    }
    assert!(taken >= 3, "{taken}");
    assert!(store.catalog_bytes() <= 2 << 20, "{}", store.catalog_bytes());
    assert!(store.needs_checkpoint(&bounds) && !store.is_full(&bounds));
    store.checkpoint(SIX).unwrap();
    assert!(!store.needs_checkpoint(&bounds));
    // What is larger than all that there may be is taken, too, when nothing waits.
    let mut room = store.room(&CheckpointBounds { cell_bytes_max: 1 << 10, ..bounds }, SIX);
    assert!(room.take(&[backfill(0)]) && !room.take(&[backfill(2000)]));
}

#[test]
fn a_stop_waits_for_one_checkpoint_and_the_last_whatever_was_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let gate = Arc::new(Gate::default());
    let (store, mut appender) = open(dir.path(), &gate);
    define(&mut appender);
    add(&mut appender, SIX.plus(10 * MINUTE));
    let (lines, _watcher) = lifelines();
    let system = System::new();
    system.block_on(async {
        let parts = CheckpointerParts {
            store: store.clone(),
            clock: Arc::new(SystemClock),
            metrics: Metrics::new().unwrap(),
            health: Health::default(),
            lifeline: lines.for_role("checkpointer"),
            interval: Duration::from_secs(3600),
            bounds: CheckpointBounds { cell_bytes_max: 0, journal_bytes_max: 0 },
        };
        gate.set(Some("head"));
        let arbiter = actix::Arbiter::new();
        let checkpointer =
            Checkpointer::start_in_arbiter(&arbiter.handle(), |_| Checkpointer::new(parts));
        gate.wait_until_one_waits();
        // So that there is something to do.
        add(&mut appender, SIX.plus(11 * MINUTE));
        for _ in 0..10 {
            checkpointer.try_send(CheckpointNow).unwrap();
        }
        let stopped = checkpointer.send(Stop);
        gate.set(None);
        stopped.await.unwrap();
    });
    assert!(store.counters().checkpoints.get() <= 2);
}
