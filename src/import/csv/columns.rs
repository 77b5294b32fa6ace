//! The meanings of columns, from options or from common names in the header.
//!
//! Must never know: the lines after the header.

use super::record::Record;

const TIME_NAMES: [&str; 6] = ["time", "timestamp", "ts", "datetime", "date", "_time"];
const METRIC_NAMES: [&str; 3] = ["metric", "name", "__name__"];
const VALUE_NAMES: [&str; 2] = ["value", "_value"];

/// The names of columns; missing ones are found by common names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns {
    /// The column of times.
    pub time: Option<String>,
    /// The column with the metric, or else the name of a single metric.
    pub metric: Option<String>,
    /// The columns of values.
    pub values: Vec<String>,
    /// The columns of tags; all other columns when `None`.
    pub tags: Option<Vec<String>>,
    /// The separator of columns.
    pub separator: u8,
}

impl Default for Columns {
    fn default() -> Self {
        Self { time: None, metric: None, values: Vec::new(), tags: None, separator: b',' }
    }
}

/// The columns of a file by their indexes.
#[derive(Debug, Default)]
pub(super) struct Layout {
    pub(super) time: usize,
    pub(super) metric: Option<usize>,
    /// The columns of values with their metrics, or with suffixes when a column has the metric.
    pub(super) values: Vec<(usize, String)>,
    pub(super) tags: Vec<(usize, String)>,
    pub(super) width: usize,
}

impl Layout {
    pub(super) fn new(header: &Record, columns: &Columns) -> Result<Self, String> {
        let names: Vec<_> = (0..header.len()).map(|index| header.get(index).trim()).collect();
        let names: Vec<_> = names.iter().map(|name| name.trim_start_matches('\u{feff}')).collect();
        let shown = names.join(", ");
        let named = |wanted: &str| names.iter().position(|name| *name == wanted);
        let common = |common: &[&str]| {
            let mut names = names.iter();
            names.position(|header| common.iter().any(|name| header.eq_ignore_ascii_case(name)))
        };
        let column = |wanted: &String, option: &str| {
            named(wanted).ok_or_else(|| {
                format!("the header has no column {wanted:?} for {option}; it has {shown}")
            })
        };
        let time = match &columns.time {
            Some(name) => column(name, "--csv-time")?,
            None => common(&TIME_NAMES).ok_or_else(|| {
                format!(
                    "no column of times was found; set it with --csv-time; the header has {shown}"
                )
            })?,
        };
        let (metric, name) = match &columns.metric {
            Some(name) => (named(name), named(name).is_none().then_some(name)),
            None => (common(&METRIC_NAMES), None),
        };
        let values = if columns.values.is_empty() {
            vec![common(&VALUE_NAMES).ok_or_else(|| {
                format!(
                    "no column of values was found; set it with --csv-value; the header has {shown}"
                )
            })?]
        } else {
            let found = columns.values.iter().map(|name| column(name, "--csv-value"));
            found.collect::<Result<Vec<_>, _>>()?
        };
        let single = values.len() == 1;
        let value_name = |index: usize| match (metric, name) {
            (Some(_), _) if single => String::new(),
            (Some(_), _) => format!("_{}", names[index]),
            (None, Some(name)) if single => name.clone(),
            (None, Some(name)) => format!("{name}_{}", names[index]),
            (None, None) => names[index].to_owned(),
        };
        let tags = match &columns.tags {
            Some(tags) => {
                tags.iter().map(|name| column(name, "--csv-tags")).collect::<Result<Vec<_>, _>>()?
            }
            None => (0..names.len())
                .filter(|index| *index != time && Some(*index) != metric && !values.contains(index))
                .collect(),
        };
        let tags = tags.into_iter().map(|index| (index, names[index].to_owned())).collect();
        let values = values.iter().map(|index| (*index, value_name(*index))).collect();
        Ok(Self { time, metric, values, tags, width: names.len() })
    }
}
