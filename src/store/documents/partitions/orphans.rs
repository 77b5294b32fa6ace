//! Removal of unfinished files and of segments without a partition, and setting aside of damaged
//! files.
//!
//! Must never know: what is in files.

use std::collections::BTreeSet;

use super::Partitions;
use crate::store::{
    documents::segment::room::is_blank, error::StoreError, file::names::partition_of_segment,
};

impl Partitions {
    /// Removes a file whose creation was interrupted, or whose partition was dropped.
    pub(super) fn remove_unfinished(&self, file: &str) -> Result<(), StoreError> {
        let fault = |cause| StoreError::Io { operation: "remove", file: file.to_owned(), cause };
        self.medium.remove(file).map_err(fault)
    }

    /// Removes segments whose partition was dropped. Segments of a lost partition stay.
    pub(super) fn remove_orphans(&self, folder: &str) -> Result<(), StoreError> {
        let open = self.open.read();
        let known: BTreeSet<&str> = open.values().map(|partition| partition.file_path()).collect();
        for (name, partition) in self.segments(folder)? {
            if !known.contains(&*partition) && !self.register.is_lost(&partition) {
                self.remove_unfinished(&name)?;
            }
        }
        Ok(())
    }

    /// Returns the segments in a folder, with the files of their partitions.
    fn segments(&self, folder: &str) -> Result<Vec<(String, String)>, StoreError> {
        let names = self.list(folder)?.into_iter().map(|name| format!("{folder}/{name}"));
        let of_partition =
            |name: String| partition_of_segment(&name).map(|partition| (name, partition));
        Ok(names.filter_map(of_partition).collect())
    }

    /// Sets a partition's files aside, except reserved space. The partition file is moved last:
    /// after an interruption, the next start finds this file and repeats the work.
    pub(super) fn set_aside(&self, file: &str, fault: &StoreError) -> Result<(), StoreError> {
        let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
        for (name, partition) in self.segments(folder)? {
            if partition != file {
                continue;
            }
            let failed = |cause| StoreError::Io { operation: "read", file: name.clone(), cause };
            if is_blank(&self.medium, &name).map_err(failed)? {
                self.remove_unfinished(&name)?;
            } else {
                self.register.set_aside(&name, fault)?;
            }
        }
        self.register.set_aside(file, fault)
    }
}
