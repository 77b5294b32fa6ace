//! What fails on the medium, and when.

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
    /// Making a file, or a folder's names, durable.
    Sync,
    /// Opening or making a file.
    Open,
    /// Listing a folder, or looking for a file.
    List,
    /// Removing a file: it is there still. When the folder's sync fails, it is not, for now.
    Remove,
    /// Renaming a file: likewise.
    Rename,
}

/// What happens instead of the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It fails with this error number, and the machine lives.
    Error(i32),
    /// Nothing reaches the medium any more, until it is powered up again.
    PowerCut,
}

/// No space left on device (Linux).
pub(crate) const ENOSPC: i32 = 28;
/// Input/output error (Linux).
pub(crate) const EIO: i32 = 5;

/// Counted over all files of the medium, from when it is armed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    /// What fails.
    pub(crate) call: Call,
    /// Calls that still succeed.
    pub(crate) after: u64,
    /// Calls that fail then; those after them succeed again.
    pub(crate) times: u64,
    /// How it fails.
    pub(crate) effect: Effect,
}

/// Faults that are armed, and how often each one's call was made.
#[derive(Debug, Default)]
pub(super) struct Faults {
    armed: Vec<(Fault, u64)>,
    /// What happened since anybody asked.
    pub(super) hits: Vec<(Call, Effect)>,
    /// The power was cut.
    pub(super) is_dead: bool,
}

impl Faults {
    pub(super) fn arm(&mut self, fault: Fault) {
        self.armed.push((fault, 0));
    }

    pub(super) fn lift(&mut self) {
        self.armed.clear();
    }

    /// Counts a call, and fails it when its time has come.
    pub(super) fn meet(&mut self, call: Call) -> io::Result<()> {
        let mut met = self.is_dead.then_some(Effect::PowerCut);
        for (fault, made) in self.armed.iter_mut().filter(|(fault, _)| fault.call == call) {
            *made += 1;
            if *made <= fault.after || *made > fault.after.saturating_add(fault.times) {
                continue;
            }
            self.hits.push((call, fault.effect));
            met = Some(fault.effect);
        }
        self.is_dead |= met == Some(Effect::PowerCut);
        match met {
            None => Ok(()),
            Some(Effect::Error(errno)) => Err(io::Error::from_raw_os_error(errno)),
            Some(Effect::PowerCut) => Err(io::Error::from_raw_os_error(EIO)),
        }
    }
}
