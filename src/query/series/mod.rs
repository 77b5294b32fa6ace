//! Series: their labels, selectors and matchers, searches, lists of names and values, previews of
//! changes.
//!
//! Must never know: cells, how an answer is displayed.

mod cardinality;
mod counts;
mod erasure;
mod facets;
pub(super) mod grouping;
pub(super) mod labels;
pub(super) mod listing;
mod matchers;
mod preview;
mod search;
pub(super) mod selection;
pub(super) mod selector;
mod series_coverage;
pub(super) mod suggestion;
mod token;

pub use cardinality::{Cardinality, cardinality};
pub use counts::{SeriesCounts, series_counts};
pub use erasure::{ErasedResolution, ErasureAnswer};
pub use facets::{FacetsAnswer, TagFacet, ValueFacet, facets};
pub use grouping::{Rank, SeriesMerge};
pub use labels::Labels;
pub use listing::{
    ListedMetric, SeriesAnswer, list_label_names, list_label_values, list_metrics, series,
    with_samples_since,
};
pub use matchers::{MatchOperator, SeriesMatcher, whole_pattern};
pub use preview::{ChangeAnswer, ChangedSeries, NewName, preview};
pub use search::{FindAnswer, FindRequest, FoundMetric, find};
pub use selection::select_series;
pub use selector::{Selector, SeriesEntry};
pub use series_coverage::{
    COVERED_SERIES_MAX, CoverageAnswer, CoverageRequest, RequestedSeries, series_coverage,
};
pub use token::SeriesToken;
