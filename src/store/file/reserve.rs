//! Reserved space: files in `reserve/` whose blocks are allocated before they are needed.
//!
//! The reserved file of a partition becomes its next segment: it is renamed, written from its
//! start, and cut when the segment is complete. File systems that never overwrite data, such as
//! btrfs, do not keep the promise, and on xfs a folder may need a block for the new name.
//!
//! Must never know: the sizes that are needed, and when.

use std::{io, sync::Arc};

use super::{
    database::UNFINISHED,
    medium::Medium,
    names::{FILE_END, partition_of_segment},
};

/// The folder of reserved files.
pub(crate) const FOLDER: &str = "reserve";
/// The end of the names of files for segments.
const ROOM_END: &str = ".room";

/// Returns the name of the reserved file of a partition's next segment: the granularity and the
/// name of the partition.
fn reserved_file(partition: &str) -> String {
    let mut parts = partition.trim_end_matches(FILE_END).rsplit('/');
    let (name, granularity) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    format!("{FOLDER}/{granularity}-{name}{ROOM_END}")
}

/// Reserves bytes for the next segment of a partition, and releases those of other partitions of
/// the granularity. Returns the bytes that are reserved, at most twice as many.
pub(crate) fn reserve(
    medium: &Arc<dyn Medium>,
    (granularity, partition): (&str, &str),
    bytes: u64,
) -> io::Result<u64> {
    let wanted = reserved_file(partition);
    for name in medium.list(FOLDER)?.into_iter().filter(|name| is_of(name, granularity)) {
        let name = format!("{FOLDER}/{name}");
        if name != wanted && (name.ends_with(UNFINISHED) || medium.exists(&wanted)?) {
            medium.remove(&name)?;
        } else if name != wanted {
            medium.rename(&name, &wanted)?;
        }
    }
    if bytes == 0 {
        medium.remove(&wanted)?;
        return Ok(0);
    }
    if !medium.exists(&wanted)? {
        let new = format!("{wanted}{UNFINISHED}");
        let file = medium.create(&new)?;
        let made = file.set_len(bytes).and_then(|()| medium.allocate(&new, 0, u64::MAX));
        if let Err(cause) = made.and_then(|()| file.sync_data()) {
            medium.remove(&new)?;
            return Err(cause);
        }
        medium.rename(&new, &wanted)?;
        return Ok(bytes);
    }
    let file = medium.open(&wanted)?;
    let before = file.len()?;
    let is_enough = (bytes..=bytes.saturating_mul(2)).contains(&before);
    let length = if is_enough { before } else { bytes };
    file.set_len(length)?;
    // An earlier allocation may have been interrupted.
    if let Err(cause) = medium.allocate(&wanted, 0, u64::MAX) {
        file.set_len(before.min(length))?;
        return Err(cause);
    }
    Ok(length)
}

/// Returns the bytes that are reserved for the next segment of a partition.
pub(crate) fn reserved(medium: &Arc<dyn Medium>, partition: &str) -> u64 {
    medium.allocated_bytes(&reserved_file(partition)).unwrap_or(0)
}

/// Removes reserved files of granularities that `keeps` refuses.
pub(crate) fn remove_others(
    medium: &Arc<dyn Medium>,
    keeps: impl Fn(&str) -> bool,
) -> io::Result<()> {
    let rooms = medium.list(FOLDER)?.into_iter().filter(|name| name.contains(ROOM_END));
    for name in rooms.filter(|name| !name.split_once('-').is_some_and(|(of, _)| keeps(of))) {
        medium.remove(&format!("{FOLDER}/{name}"))?;
    }
    Ok(())
}

/// Renames the reserved file of a segment's partition; returns its former name, or `None` when
/// nothing is reserved.
pub(crate) fn take(
    medium: &Arc<dyn Medium>,
    segment: &str,
    to: &str,
) -> io::Result<Option<String>> {
    let Some(reserved) = partition_of_segment(segment).map(|file| reserved_file(&file)) else {
        return Ok(None);
    };
    if !medium.exists(&reserved)? {
        return Ok(None);
    }
    medium.rename(&reserved, to)?;
    Ok(Some(reserved))
}

/// Returns whether a file is reserved for a granularity.
fn is_of(name: &str, granularity: &str) -> bool {
    let rest = name.strip_prefix(granularity).and_then(|rest| rest.strip_prefix('-'));
    rest.is_some_and(|rest| rest.contains(ROOM_END))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

    use super::*;
    use crate::store::faulty::{Call, ENOSPC, Effect, Fault, FaultyMedium};

    const SIX: &str = "partitions/1m/2026-11-21T0600.redb";
    const NOON: &str = "partitions/1m/2026-11-21T1200.redb";

    fn files(medium: &FaultyMedium) -> Vec<(String, u64)> {
        let bytes = |name: String| (name.clone(), medium.allocated_bytes(&name).unwrap());
        medium.files().into_iter().map(bytes).collect()
    }

    fn file(name: &str, bytes: u64) -> (String, u64) {
        (format!("reserve/{name}"), bytes)
    }

    #[test]
    fn each_granularity_has_one_reserved_file_for_its_next_segment() {
        let faulty = FaultyMedium::new(7);
        let medium: Arc<dyn Medium> = Arc::new(faulty.clone());
        let keep = |granularity, partition, bytes| {
            reserve(&medium, (granularity, partition), bytes).unwrap()
        };
        assert_eq!(keep("1m", SIX, 100), 100);
        assert_eq!(keep("11m", "partitions/11m/2026-11-21.redb", 7), 7);
        assert_eq!(keep("1m", SIX, 60), 100, "up to twice the bytes are kept");
        assert_eq!(keep("1m", NOON, 300), 300, "the file moves to the next partition");
        let eleven = file("11m-2026-11-21.room", 7);
        assert_eq!(files(&faulty), [eleven.clone(), file("1m-2026-11-21T1200.room", 300)]);
        assert_eq!(keep("1m", NOON, 100), 100);
        // A segment of another partition takes nothing.
        let taken = |segment| take(&medium, segment, "partitions/1m/x.new").unwrap();
        assert_eq!(taken("partitions/1m/2026-11-21T0600.3.sealed"), None);
        let reserved = taken("partitions/1m/2026-11-21T1200.3.sealed");
        assert_eq!(reserved.as_deref(), Some("reserve/1m-2026-11-21T1200.room"));
        assert_eq!(files(&faulty), [("partitions/1m/x.new".to_owned(), 100), eleven]);
        remove_others(&medium, |granularity| granularity == "1m").unwrap();
        assert_eq!(files(&faulty).len(), 1);
        assert_eq!(keep("1m", NOON, 0), 0);
    }

    #[test]
    fn a_full_disk_leaves_what_was_reserved_before() {
        let faulty = FaultyMedium::new(7);
        let medium: Arc<dyn Medium> = Arc::new(faulty.clone());
        let full = || {
            let effect = Effect::Error(ENOSPC);
            faulty.arm(Fault { call: Call::Allocate, after: 0, times: 1, effect });
        };
        full();
        reserve(&medium, ("1m", SIX), 100).unwrap_err();
        assert_eq!(files(&faulty), []);
        reserve(&medium, ("1m", SIX), 100).unwrap();
        full();
        reserve(&medium, ("1m", SIX), 500).unwrap_err();
        assert_eq!(files(&faulty), [file("1m-2026-11-21T0600.room", 100)]);
    }
}
