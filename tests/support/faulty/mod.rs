//! A medium in memory that fails on purpose: calls fail once, for a while or until the fault is
//! removed, the power is cut at the Nth sync, or the process is killed; then the surviving image is
//! opened again. A call can be held while other work runs.

mod disk;
mod fault;

use std::{
    io,
    path::Path,
    sync::{Arc, Condvar, Mutex, MutexGuard},
    time::Duration,
};

use fastrand::Rng;
use granary::store::{FORMAT_VERSION, Medium};
use redb::StorageBackend;

pub(crate) use self::fault::{Call, EIO, ENOSPC, Effect, Fault};
use self::{
    disk::{Disk, FileImage, folders_above, parent},
    fault::Faults,
};

/// A held call continues after this time, because the thread that holds it may wait for the call.
const HELD_MAX: Duration = Duration::from_millis(20);

#[derive(Debug, Default)]
struct State {
    disk: Disk,
    faults: Faults,
    gate: Gate,
    /// The number of power cuts and kills; files opened before the last one return errors.
    generation: u64,
    rng: Rng,
    /// The written format minus the format of this release.
    formats_ahead: i64,
}

impl State {
    /// Makes the names in the folders above a path durable, one folder after the other.
    fn sync_folders(&mut self, path: &str) -> io::Result<()> {
        for folder in folders_above(path) {
            if !self.disk.has_settled(&folder) {
                self.faults.count_call(Call::Sync)?;
                self.disk.sync_folder(&folder);
            }
        }
        Ok(())
    }
}

/// A gate that holds the Nth write or sync until it is opened.
#[derive(Debug, Default, PartialEq, Eq)]
enum Gate {
    #[default]
    Open,
    /// The gate closes after this number of calls.
    Closes(u64),
    Held,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    gate_moved: Condvar,
}

/// A medium that fails on purpose; see the module. Clones share the medium.
#[derive(Debug, Clone, Default)]
pub(crate) struct FaultyMedium(Arc<Shared>);

impl FaultyMedium {
    /// Returns an empty medium; the seed decides which data survives a fault.
    pub(crate) fn new(seed: u64) -> Self {
        let medium = Self::default();
        medium.state().rng = Rng::with_seed(seed);
        medium
    }

    /// Makes the store write a later or an earlier format from its next start on, as another
    /// release would.
    pub(crate) fn set_formats_ahead(&self, formats_ahead: i64) {
        self.state().formats_ahead = formats_ahead;
    }

    /// Creates a durable file.
    pub(crate) fn put(&self, name: &str, bytes: Vec<u8>) {
        self.state().disk.put(name, bytes);
    }

    /// Returns the paths of all files.
    pub(crate) fn files(&self) -> Vec<String> {
        self.state().disk.all_files()
    }

    /// Removes a file durably.
    pub(crate) fn erase(&self, name: &str) {
        let disk = &mut self.state().disk;
        disk.remove(name);
        disk.sync_folder(parent(name));
    }

    /// Changes the content of a file durably.
    pub(crate) fn damage_file(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let state = &mut *self.state();
        let inode = state.disk.find(name).expect("the name is listed");
        let image = state.disk.image(inode);
        let mut bytes = image.bytes().to_vec();
        change(&mut bytes);
        *image = FileImage::of(bytes);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap()
    }

    fn file(&self, inode: u64, generation: u64) -> Box<dyn StorageBackend> {
        Box::new(FaultyFile { medium: self.clone(), inode, generation })
    }

    /// Arms a fault; its counts begin now.
    pub(crate) fn arm(&self, fault: Fault) {
        self.state().faults.arm(fault);
    }

    /// Removes all faults, as if space were freed or the cable plugged in again.
    pub(crate) fn lift(&self) {
        self.state().faults.lift();
    }

    /// Returns the faults that occurred since the last call of this function.
    pub(crate) fn take_hits(&self) -> Vec<(Call, Effect)> {
        std::mem::take(&mut self.state().faults.hits)
    }

    /// Returns true if the power was cut.
    pub(crate) fn is_power_cut(&self) -> bool {
        self.state().faults.is_power_cut
    }

    /// Restores the power; only the durable data, and some of the rest, remains.
    pub(crate) fn power_up(&self) {
        let state = &mut *self.state();
        state.generation += 1;
        state.faults = Faults::default();
        state.disk.cut_power(&mut state.rng);
    }

    /// Kills the process while the system continues: written data remains, and later writes fail.
    pub(crate) fn kill(&self) {
        self.state().generation += 1;
    }

    /// Lets this many writes and syncs pass and holds the next one.
    pub(crate) fn close_gate(&self, after: u64) {
        self.state().gate = Gate::Closes(after);
    }

    /// Waits until a call is held or the gate is opened; returns true if a call is held.
    pub(crate) fn wait_at_gate(&self) -> bool {
        let closes = |state: &mut State| matches!(state.gate, Gate::Closes(_));
        let state = self.0.gate_moved.wait_while(self.state(), closes).unwrap();
        state.gate == Gate::Held
    }

    /// Releases a held call and lets later calls pass; returns whether a call was held.
    pub(crate) fn open_gate(&self) -> bool {
        let previous = std::mem::take(&mut self.state().gate);
        self.0.gate_moved.notify_all();
        previous == Gate::Held
    }

    fn pass_gate_or_wait<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        match &mut state.gate {
            Gate::Open | Gate::Held => return state,
            Gate::Closes(0) => state.gate = Gate::Held,
            Gate::Closes(left) => {
                *left -= 1;
                return state;
            }
        }
        self.0.gate_moved.notify_all();
        let held = |state: &mut State| state.gate == Gate::Held;
        let waited = self.0.gate_moved.wait_timeout_while(state, HELD_MAX, held);
        let (mut state, _) = waited.unwrap();
        state.gate = Gate::Open;
        state
    }
}

#[derive(Debug)]
struct FaultyFile {
    medium: FaultyMedium,
    inode: u64,
    generation: u64,
}

impl FaultyFile {
    fn call<T>(
        &self,
        call: Call,
        run: impl FnOnce(&mut FileImage, &mut Rng, io::Result<()>) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut state = self.medium.state();
        if matches!(call, Call::Write | Call::Sync) && state.generation == self.generation {
            state = self.medium.pass_gate_or_wait(state);
        }
        if state.generation != self.generation {
            return Err(io::Error::from_raw_os_error(EIO));
        }
        let outcome = match state.faults.count_call(call) {
            Err(cause) if state.faults.is_power_cut => return Err(cause),
            outcome => outcome,
        };
        let state = &mut *state;
        run(state.disk.image(self.inode), &mut state.rng, outcome)
    }
}

impl StorageBackend for FaultyFile {
    fn len(&self) -> io::Result<u64> {
        self.call(Call::Read, |file, _, outcome| outcome.map(|()| file.bytes().len() as u64))
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.call(Call::Read, |file, _, outcome| {
            outcome?;
            let from = offset as usize;
            let bytes = file.bytes().get(from..from + out.len());
            out.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
            Ok(())
        })
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.call(Call::SetLen, |file, _, outcome| {
            outcome?;
            file.set_len(len as usize);
            Ok(())
        })
    }

    fn sync_data(&self) -> io::Result<()> {
        self.call(Call::Sync, |file, rng, outcome| {
            match &outcome {
                Ok(()) => file.sync(),
                Err(_) => file.fail_sync(rng),
            }
            outcome
        })
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.call(Call::Write, |file, _, outcome| {
            outcome?;
            file.write(offset as usize, data);
            Ok(())
        })
    }
}

impl Medium for FaultyMedium {
    fn format(&self) -> u64 {
        FORMAT_VERSION.saturating_add_signed(self.state().formats_ahead)
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn StorageBackend>> {
        let mut state = self.state();
        state.faults.count_call(Call::Open)?;
        let inode = state.disk.find(name).ok_or(io::ErrorKind::NotFound)?;
        let image = state.disk.image(inode);
        image.drop_cache();
        if image.bytes().is_empty() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(self.file(inode, state.generation))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn StorageBackend>> {
        let mut state = self.state();
        state.faults.count_call(Call::Open)?;
        if state.disk.find(name).is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let inode = state.disk.create(name);
        Ok(self.file(inode, state.generation))
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let mut state = self.state();
        state.faults.count_call(Call::List)?;
        Ok(state.disk.files_in(folder))
    }

    fn folders(&self, folder: &str) -> io::Result<Vec<String>> {
        let mut state = self.state();
        state.faults.count_call(Call::List)?;
        Ok(state.disk.folders_in(folder))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.state();
        state.faults.count_call(Call::Remove)?;
        state.disk.remove(name);
        state.sync_folders(name)
    }

    fn exists(&self, name: &str) -> io::Result<bool> {
        let mut state = self.state();
        state.faults.count_call(Call::List)?;
        Ok(state.disk.find(name).is_some())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state();
        state.faults.count_call(Call::Rename)?;
        state.disk.rename(from, to)?;
        state.sync_folders(to)?;
        state.sync_folders(from)
    }

    fn settle(&self, name: &str) -> io::Result<()> {
        let mut state = self.state();
        state.disk.find(name).ok_or(io::ErrorKind::NotFound)?;
        state.sync_folders(name)
    }

    fn allocate(&self, name: &str, _beyond: u64, _bytes_max: u64) -> io::Result<()> {
        let mut state = self.state();
        state.faults.count_call(Call::Allocate)?;
        state.disk.find(name).map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn allocated_bytes(&self, name: &str) -> io::Result<u64> {
        Ok(self.state().disk.image_named(name).map_or(0, |file| file.bytes().len() as u64))
    }

    fn copy(&self, name: &str, target: &Path) -> io::Result<u64> {
        let mut state = self.state();
        state.faults.count_call(Call::Read)?;
        let file = state.disk.image_named(name).ok_or(io::ErrorKind::NotFound)?;
        std::fs::write(target, file.bytes())?;
        Ok(file.bytes().len() as u64)
    }
}
