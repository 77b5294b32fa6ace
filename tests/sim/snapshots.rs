//! Snapshots: each is made during other work, compared with the oracle, deleted when it expires,
//! and restored.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    sync::{Arc, mpsc},
    thread::{self, Scope, ScopedJoinHandle},
    time::Duration,
};

use granary::{
    model::UnixMillis,
    policy::{KeptSnapshot, SnapshotPolicy},
    store::{SnapshotFolder, Store, StoreError, restore, verify},
};
use tempfile::TempDir;

use crate::{
    faulty::FaultyMedium, history::History, levels::Levels, objects::Objects, senders::SentBatch,
    setup::HOUR, shells::InsertedDocuments, upkeep::Upkeep, world::Worlds,
};

const POLICY: SnapshotPolicy = SnapshotPolicy { count_max: 3, retention_ms: 3 * HOUR };
/// The time for which a snapshot waits for the concurrent work, which may be waiting for the
/// snapshot.
const WAIT_FOR_WORK_MAX: Duration = Duration::from_millis(2);

/// The expected state of a history after a restore of a snapshot.
#[derive(Clone)]
struct SavedState {
    worlds: Worlds,
    sent: Vec<SentBatch>,
    levels: Levels,
    objects: Objects,
    inserted: Vec<InsertedDocuments>,
}

/// The folder of snapshots, and the expected state of each snapshot.
pub(crate) struct SnapshotShelf {
    dir: TempDir,
    kept: BTreeMap<UnixMillis, SavedState>,
}

impl SnapshotShelf {
    fn new() -> Self {
        // The folder need not survive a power cut of the machine that runs the test.
        let memory = Path::new("/dev/shm");
        let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        Self { dir: dir.unwrap(), kept: BTreeMap::new() }
    }

    fn folder(&self) -> SnapshotFolder {
        SnapshotFolder::new(self.dir.path().join("snapshots"))
    }

    /// Deletes expired snapshots as the role does; returns the number of deleted snapshots.
    fn remove_expired(&mut self, now: UnixMillis) -> usize {
        let folder = self.folder();
        folder.remove_unfinished().unwrap();
        let listed = folder.list().unwrap();
        assert!(listed.iter().map(|(at, _)| at).eq(self.kept.keys()), "{listed:?}");
        let listed: Vec<_> =
            listed.into_iter().map(|(at, bytes)| KeptSnapshot { at, bytes }).collect();
        let expired = POLICY.expired(&listed, now);
        for at in &expired {
            folder.remove(*at).unwrap();
            self.kept.remove(at);
        }
        assert!(self.kept.keys().all(|at| now.0 - at.0 <= POLICY.retention_ms));
        let left = fs::read_dir(self.dir.path().join("snapshots")).map_or(0, Iterator::count);
        assert_eq!(left, self.kept.len(), "unfinished snapshots are removed, too");
        expired.len()
    }
}

/// The work during a snapshot, on separate threads.
type RunningWork<'scope> = Vec<(Upkeep, ScopedJoinHandle<'scope, Result<u64, StoreError>>)>;

/// The expected contents of the files copied so far.
#[derive(Default)]
struct CopiedContents {
    objects: Option<Objects>,
    journal: Option<(Worlds, Vec<SentBatch>)>,
}

impl History {
    /// Makes a snapshot, or restores an earlier one.
    pub(crate) fn save_or_restore(&mut self) {
        let mut shelf = self.shelf.take().unwrap_or_else(SnapshotShelf::new);
        if !shelf.kept.is_empty() && self.rng.u8(0..3) == 0 {
            self.restore_snapshot(&shelf);
        } else {
            self.make_snapshot(&mut shelf);
        }
        self.shelf = Some(shelf);
    }

    fn make_snapshot(&mut self, shelf: &mut SnapshotShelf) {
        let now = self.now();
        self.tally.count("expired snapshots", shelf.remove_expired(now.earliest()) as u64);
        let folder = shelf.folder();
        let target = folder.path(now.clock);
        if shelf.kept.len() == POLICY.count_max || target.exists() {
            return;
        }
        let (store, mut copied) = (self.store(), CopiedContents::default());
        let levels = self.levels.clone();
        let (outcome, done) = thread::scope(|scope| {
            let mut running = Vec::new();
            let outcome = store.snapshot(&target, now, &mut |file| {
                self.run_beside_snapshot(scope, &store, &mut running);
                match file {
                    "head.redb" => copied.objects = Some(self.objects.clone()),
                    "journal.redb" => {
                        copied.journal = Some((self.worlds.clone(), self.sent.clone()));
                    }
                    _ => {}
                }
            });
            let done = running.into_iter().map(|(work, thread)| (work, thread.join().unwrap()));
            (outcome, done.collect::<Vec<_>>())
        });
        drop(store);
        if self.open.is_none() {
            // The process was killed during the snapshot and left temporary files.
            self.tally.note("snapshots cut short");
            if outcome.is_ok() {
                fs::remove_dir_all(&target).unwrap();
            }
            let mut unfinished = target.into_os_string();
            unfinished.push(".partial");
            fs::create_dir_all(Path::new(&unfinished).join("partitions")).unwrap();
            self.restart();
            return;
        }
        for (work, outcome) in done {
            self.note_outcome(&work, outcome);
        }
        match outcome {
            Ok(_) => {
                self.tally.note("snapshots");
                self.trace(|| "snapshot".to_owned());
                let (worlds, sent) = copied.journal.unwrap();
                let (objects, inserted) = (copied.objects.unwrap(), self.inserted.clone());
                let saved = SavedState { worlds, sent, levels, objects, inserted };
                self.compare(&target, &saved);
                shelf.kept.insert(now.clock, saved);
            }
            Err(cause) => self.expect_fault(&cause, "failed snapshots"),
        }
    }

    /// Runs other work during a snapshot in some steps.
    fn run_beside_snapshot<'scope>(
        &mut self,
        scope: &'scope Scope<'scope, '_>,
        store: &Store,
        running: &mut RunningWork<'scope>,
    ) {
        if self.open.is_none() || self.rng.u8(0..3) > 0 {
            return;
        }
        self.tally.note("beside snapshots");
        let work = match self.rng.u8(0..48) {
            0 => {
                self.trace(|| "killed beside a snapshot".to_owned());
                self.medium.kill();
                self.open = None;
                return;
            }
            1..12 => return self.send_new(),
            12..18 => return self.resend(),
            18..20 => return self.change_series(),
            20..24 => return self.compare_part(),
            24..30 => return self.use_objects(),
            30..36 => Upkeep::Drop,
            36..39 => Upkeep::Seal,
            39..42 => self.shell_work(),
            _ => Upkeep::Checkpoint,
        };
        self.trace(|| format!("beside a snapshot: {work:?}"));
        let (store, now, background) = (store.clone(), self.now(), work.clone());
        let (done, is_done) = mpsc::channel::<()>();
        let thread = scope.spawn(move || {
            let outcome = background.run(&store, now);
            drop(done);
            outcome
        });
        let is_held =
            is_done.recv_timeout(WAIT_FOR_WORK_MAX) == Err(mpsc::RecvTimeoutError::Timeout);
        self.tally.count("held by snapshots", u64::from(is_held));
        running.push((work, thread));
    }

    /// Checks that a snapshot has no faults and answers as the oracle does.
    fn compare(&mut self, target: &Path, saved: &SavedState) {
        let now = self.clock.clock();
        let report = verify(target, now, &mut |_| {}).unwrap();
        // Only faults of damaged files are permitted.
        let is_about_others = |fault: &&granary::store::Fault| {
            fault.problem.contains("recomputed from") || fault.problem.ends_with("contains samples")
        };
        let is_of_number = |fault: &granary::store::Fault| fault.problem.contains("the number ");
        let mut others = report.faults.iter().filter(|fault| !is_of_number(fault));
        let fault = others.find(|fault| !self.is_damaged || is_about_others(fault));
        assert_eq!(fault, None);
        let copy = FaultyMedium::new(0);
        put_all(&copy, target, "");
        let (store, _, _) = Store::open(Arc::new(copy), saved.levels.current.clone(), now).unwrap();
        let (mut worlds, mut objects) = (saved.worlds.clone(), saved.objects.clone());
        worlds.reopened();
        for level in 0..saved.levels.current.count() {
            let found = loop {
                match self.find_all(&store, level) {
                    Err(cause) if self.is_damaged && cause.is_transient() => {}
                    outcome => break outcome.unwrap(),
                }
            };
            let checked = worlds.check(&found);
            checked.unwrap_or_else(|wrong| panic!("a snapshot has {wrong}"));
        }
        objects.check(&store).unwrap();
        self.tally.note("snapshots compared");
    }

    /// Restores a snapshot. Later batches are sent again if their senders still have them.
    fn restore_snapshot(&mut self, shelf: &SnapshotShelf) {
        let index = self.rng.usize(0..shelf.kept.len());
        let Some((at, saved)) = shelf.kept.iter().nth(index) else { return };
        self.tally.note("restores");
        self.trace(|| "restore".to_owned());
        let data = shelf.dir.path().join("data");
        restore(&shelf.folder().path(*at), &data, &mut |_| {}).unwrap();
        self.open = None;
        self.medium = FaultyMedium::new(self.rng.u64(..));
        put_all(&self.medium, &data, "");
        fs::remove_dir_all(&data).unwrap();
        let SavedState { worlds, sent, levels, objects, inserted } = saved.clone();
        (self.worlds, self.levels, self.objects) = (worlds, levels, objects);
        self.inserted = inserted;
        for (batch, saved_batch) in self.sent.iter_mut().zip(sent) {
            *batch = saved_batch;
        }
    }
}

fn put_all(medium: &FaultyMedium, folder: &Path, prefix: &str) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{prefix}{}", path.file_name().unwrap().to_str().unwrap());
        if path.is_dir() {
            put_all(medium, &path, &format!("{name}/"));
        } else {
            medium.put(&name, fs::read(&path).unwrap());
        }
    }
}
