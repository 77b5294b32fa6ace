//! The names of the files below a data directory: the journal, the head, the objects, and the
//! partitions, which are named after their starts.
//!
//! Must never know: the content of the files.

use std::{ops::Range, sync::Arc};

use super::medium::Medium;
use crate::{
    model::{Granularity, Span, UnixMillis, split_level},
    store::error::StoreError,
};

/// The name of the journal's file.
pub(crate) const JOURNAL_FILE: &str = "journal.redb";
/// The name of the head's file.
pub(crate) const HEAD_FILE: &str = "head.redb";
/// The name of the objects' file.
pub(crate) const OBJECTS_FILE: &str = "objects.redb";
/// The folder of partitions, with a folder for each granularity.
pub(crate) const PARTITIONS_FOLDER: &str = "partitions";
/// The suffix of the names of files with tables.
pub(crate) const FILE_END: &str = ".redb";
/// The suffix of a segment's name, after the name of its partition and a number.
const SEGMENT_END: &str = ".sealed";

/// A unit in milliseconds that divides a partition's span, and the format of the start in the name.
const FILE_NAMES: [(i64, &str); 3] =
    [(86_400_000, "%Y-%m-%d"), (60_000, "%Y-%m-%dT%H%M"), (1000, "%Y-%m-%dT%H%M%S")];

/// Returns the folder of a granularity's files below the data directory.
pub(crate) fn partition_folder(granularity: &Granularity) -> String {
    format!("{PARTITIONS_FOLDER}/{}", granularity.name)
}

/// Returns the name of a partition's file below the data directory.
pub(crate) fn partition_file(granularity: &Granularity, range: Range<i64>) -> String {
    let Range { start, end } = range;
    // The name contains only as much of the time as distinguishes partitions.
    let is_whole = |(unit_ms, _): &&(i64, &str)| [start, end].iter().all(|at| at % unit_ms == 0);
    let format = match FILE_NAMES.iter().find(is_whole) {
        Some((_, format)) => format,
        None => FILE_NAMES[FILE_NAMES.len() - 1].1,
    };
    let name = UnixMillis(start).civil().strftime(format);
    format!("{}/{name}{FILE_END}", partition_folder(granularity))
}

/// Returns the name of a segment of a partition.
pub(crate) fn segment_file(partition: &str, number: u32) -> String {
    let stem = partition.strip_suffix(FILE_END).unwrap_or(partition);
    format!("{stem}.{number}{SEGMENT_END}")
}

/// Returns the number of a segment of a partition; `None` for other files.
pub(crate) fn segment_number(partition: &str, name: &str) -> Option<u32> {
    let stem = partition.strip_suffix(FILE_END)?;
    let rest = name.strip_prefix(stem)?.strip_prefix('.')?;
    rest.strip_suffix(SEGMENT_END)?.parse().ok()
}

/// Returns the file of a segment's partition; `None` when the file is no segment.
pub(crate) fn partition_of_segment(name: &str) -> Option<String> {
    let (stem, number) = name.strip_suffix(SEGMENT_END)?.rsplit_once('.')?;
    number.parse::<u32>().is_ok().then(|| format!("{stem}{FILE_END}"))
}

/// Returns the start of a partition from the name of its file; `None` for other files.
pub(crate) fn partition_start(name: &str) -> Option<UnixMillis> {
    let stem = name.strip_suffix(FILE_END)?;
    let read = |(_, format): &(i64, &str)| {
        let parsed = jiff::fmt::strtime::parse(format, stem).ok()?;
        let date = parsed.to_date().ok()?;
        Some(date.to_datetime(parsed.to_time().unwrap_or_default()))
    };
    let civil = FILE_NAMES.iter().find_map(read)?;
    let zoned = civil.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    Some(UnixMillis(zoned.timestamp().as_millisecond()))
}

/// Returns the names of the granularities that have files.
pub(crate) fn granularities_with_files(
    medium: &Arc<dyn Medium>,
) -> Result<Vec<String>, StoreError> {
    let fault =
        |cause| StoreError::Io { operation: "list", file: PARTITIONS_FOLDER.to_owned(), cause };
    let mut names = medium.folders(PARTITIONS_FOLDER).map_err(fault)?;
    let mut failed = None;
    names.retain(|name| match medium.list(&format!("{PARTITIONS_FOLDER}/{name}")) {
        Ok(files) => files.iter().any(|file| file.ends_with(FILE_END)),
        Err(cause) => {
            failed = Some(cause);
            false
        }
    });
    failed.map_or(Ok(names), |cause| Err(fault(cause)))
}

/// Returns the folders of granularities that contain no partition.
pub(crate) fn folders_without_partitions(
    medium: &Arc<dyn Medium>,
) -> Result<Vec<String>, StoreError> {
    let with_files = granularities_with_files(medium)?;
    let fault =
        |cause| StoreError::Io { operation: "list", file: PARTITIONS_FOLDER.to_owned(), cause };
    let names = medium.folders(PARTITIONS_FOLDER).map_err(fault)?.into_iter();
    let is_unused =
        |name: &String| split_level(name).0.parse::<Span>().is_ok() && !with_files.contains(name);
    Ok(names.filter(is_unused).map(|name| format!("{PARTITIONS_FOLDER}/{name}")).collect())
}

/// Returns the names of all files except the journal's, the head first.
pub(crate) fn data_files(medium: &Arc<dyn Medium>) -> Result<Vec<String>, StoreError> {
    let fault = |operation: &'static str, file: &str| {
        let file = file.to_owned();
        move |cause| StoreError::Io { operation, file, cause }
    };
    let mut names = Vec::new();
    for file in [HEAD_FILE, OBJECTS_FILE] {
        if medium.exists(file).map_err(fault("find", file))? {
            names.push(file.to_owned());
        }
    }
    for granularity in
        medium.folders(PARTITIONS_FOLDER).map_err(fault("list", PARTITIONS_FOLDER))?
    {
        let folder = format!("{PARTITIONS_FOLDER}/{granularity}");
        let files = medium.list(&folder).map_err(fault("list", &folder))?;
        let is_data = |name: &String| name.ends_with(FILE_END) || name.ends_with(SEGMENT_END);
        let files = files.into_iter().filter(is_data);
        names.extend(files.map(|name| format!("{folder}/{name}")));
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{model::GranularityIndex, setup::NOW, store::documents::grid::PartitionGrid};

    #[test]
    fn every_partition_has_a_unique_name_with_its_start() {
        for (span, name) in [
            ("5s", "2026-11-21T123455"),
            ("1m", "2026-11-21T1234"),
            ("90s", "2026-11-21T123430"),
            ("6h", "2026-11-21T1200"),
            ("1d", "2026-11-21"),
            ("1y", "2026-01-01"),
        ] {
            let span: Span = span.parse().unwrap();
            let granularity = Granularity::new(1000, Span::Fixed(1000), span, span);
            let grid =
                PartitionGrid::between(&granularity, GranularityIndex::FINEST, NOW, None, None);
            let file = partition_file(&granularity, grid.range());
            assert_eq!(file, format!("partitions/1s/{name}.redb"));
            let base = file.trim_start_matches("partitions/1s/");
            assert_eq!(partition_start(base), Some(grid.id.start), "{base}");
            let next = PartitionGrid::between(
                &granularity,
                GranularityIndex::FINEST,
                grid.end,
                Some(&grid),
                None,
            );
            assert_ne!(partition_file(&granularity, next.range()), file);
        }
        for name in ["2026-11-01", "x.redb", "2026-13-01.redb"] {
            assert_eq!(partition_start(name), None, "{name}");
        }
    }
}
