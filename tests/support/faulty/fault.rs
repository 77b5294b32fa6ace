//! Faults of the medium, and their times.

use std::io;

/// A call of the medium or of one of its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    /// Reading bytes, or a file's length.
    Read,
    /// Writing bytes.
    Write,
    /// Changing a file's length.
    SetLen,
    /// Allocating the blocks of a file.
    Allocate,
    /// Syncing a file, or a folder's names.
    Sync,
    /// Opening or creating a file.
    Open,
    /// Listing a folder, or searching for a file.
    List,
    /// Removing a file, which remains. When only the folder's sync fails, the file is removed, but
    /// may return after a power cut.
    Remove,
    /// Renaming a file, which keeps its name. When only a folder's sync fails, the new name is not
    /// durable.
    Rename,
}

/// The effect of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The call returns this error number, and the machine continues.
    Error(i32),
    /// Nothing reaches the medium until the power returns.
    PowerCut,
}

/// No space left on device (Linux).
pub(crate) const ENOSPC: i32 = 28;
/// Input/output error (Linux).
pub(crate) const EIO: i32 = 5;

/// A fault of the medium. Calls count over all files, from the time at which the fault is armed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The failing call.
    pub(crate) call: Call,
    /// Calls that still succeed.
    pub(crate) after: u64,
    /// Calls that then fail; later calls succeed again.
    pub(crate) times: u64,
    /// The effect.
    pub(crate) effect: Effect,
}

/// Armed faults, and the count of calls for each.
#[derive(Debug, Default)]
pub(super) struct Faults {
    armed: Vec<(Fault, u64)>,
    /// Faults that occurred since they were last read.
    pub(super) hits: Vec<(Call, Effect)>,
    /// True after a power cut.
    pub(super) is_power_cut: bool,
}

impl Faults {
    pub(super) fn arm(&mut self, fault: Fault) {
        self.armed.push((fault, 0));
    }

    pub(super) fn lift(&mut self) {
        self.armed.clear();
    }

    /// Counts a call, and fails it if a fault is due.
    pub(super) fn count_call(&mut self, call: Call) -> io::Result<()> {
        let mut due_effect = self.is_power_cut.then_some(Effect::PowerCut);
        for (fault, count) in self.armed.iter_mut().filter(|(fault, _)| fault.call == call) {
            *count += 1;
            if *count <= fault.after || *count > fault.after.saturating_add(fault.times) {
                continue;
            }
            self.hits.push((call, fault.effect));
            due_effect = Some(fault.effect);
        }
        self.is_power_cut |= due_effect == Some(Effect::PowerCut);
        match due_effect {
            None => Ok(()),
            Some(Effect::Error(errno)) => Err(io::Error::from_raw_os_error(errno)),
            Some(Effect::PowerCut) => Err(io::Error::from_raw_os_error(EIO)),
        }
    }
}
