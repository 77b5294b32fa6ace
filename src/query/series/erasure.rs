//! The answer to erasing the samples of series in a range of time.

use serde::{Deserialize, Serialize};

use crate::{model::UnixMillis, query::Timestamp, store::ErasureReport};

/// The result of an erasure, or of its dry run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErasureAnswer {
    /// Number of series that match.
    pub total: usize,
    /// True when nothing was deleted.
    pub dry_run: bool,
    /// The start of the range.
    pub start: Timestamp,
    /// The end of the range, exclusive.
    pub end: Timestamp,
    /// Number of cells, over all resolutions, that were emptied or recomputed.
    pub cells: u64,
    /// The resolutions with cells to erase, finest first; only in a dry run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resolutions: Vec<ErasedResolution>,
}

/// The effect of an erasure at one resolution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErasedResolution {
    /// The name of the resolution; with the name of its class after an @.
    pub resolution: String,
    /// Number of cells that would be emptied.
    pub cells: u64,
    /// Number of samples that would be deleted.
    pub samples: u64,
    /// Number of cells that would be recomputed, because the range cuts their slots.
    pub recomputed: u64,
}

impl ErasureAnswer {
    /// Returns the answer to a dry run.
    pub fn dry(report: ErasureReport, (start, end): (UnixMillis, UnixMillis)) -> Self {
        let resolutions = report.levels.into_iter().map(|level| ErasedResolution {
            resolution: level.level,
            cells: level.cells,
            samples: level.samples,
            recomputed: level.recomputed,
        });
        let resolutions: Vec<_> = resolutions.collect();
        let cells = resolutions.iter().map(|level| level.cells + level.recomputed).sum();
        let (start, end) = (Timestamp(start), Timestamp(end));
        Self { total: report.series, dry_run: true, start, end, cells, resolutions }
    }

    /// Returns the answer to a complete erasure of a number of cells.
    pub fn done(
        report: &ErasureReport,
        cells: u64,
        (start, end): (UnixMillis, UnixMillis),
    ) -> Self {
        let (start, end, resolutions) = (Timestamp(start), Timestamp(end), Vec::new());
        Self { total: report.series, dry_run: false, start, end, cells, resolutions }
    }
}
