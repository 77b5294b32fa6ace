//! Series: their labels, selectors and matchers, searches, lists of names and values, previews of
//! changes.
//!
//! Must never know: cells, how an answer is displayed.

mod erasure;
mod facets;
pub(super) mod grouping;
pub(super) mod labels;
mod largest;
pub(super) mod listing;
pub(super) mod matched;
mod matchers;
mod preview;
mod search;
pub(super) mod selector;
pub(super) mod sent_matchers;
mod series_coverage;
pub(super) mod suggestion;
mod token;
mod tsdb_status;

pub use erasure::{ErasedResolution, ErasureAnswer};
pub use facets::{FacetCounts, FacetsAnswer, TagFacet, ValueFacet, facets};
pub use grouping::{Rank, SeriesMerge};
pub use labels::Labels;
pub use largest::{SeriesCounts, series_counts, series_counts_of_shard};
pub use listing::{
    ListedMetric, SeriesAnswer, list_label_names, list_label_values, list_metrics, series,
    with_samples_since,
};
pub use matched::select_series;
pub use matchers::{MatchOperator, SeriesMatcher, whole_pattern};
pub use preview::{ChangeAnswer, ChangedSeries, NewName, preview};
pub use search::{FindAnswer, FindRequest, FoundMetric, find};
pub use selector::{Selector, SeriesEntry};
pub use series_coverage::{
    COVERED_SERIES_MAX, CoverageAnswer, CoverageRequest, RequestedSeries, series_coverage,
};
pub use token::SeriesToken;
pub use tsdb_status::{Cardinality, cardinality, tsdb_status_of_shard};
