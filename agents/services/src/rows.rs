//! Tables that map a server's names of numbers to metrics and units.
//!
//! Must never know: how a server is queried.

use granary_agent_kit::Readings;

/// A row: the server's name for a number, the metric, its unit.
pub(crate) type Row = (&'static str, &'static str, &'static str);

/// The metrics of a server, by kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rows {
    pub(crate) gauges: &'static [Row],
    pub(crate) counters: &'static [Row],
}

impl Rows {
    /// Adds a number if the table contains it.
    pub(crate) fn push_value(
        self,
        (name, value): (&str, f64),
        tags: &[(&'static str, &str)],
        readings: &mut Readings,
    ) {
        let find = |rows: &'static [Row]| rows.iter().find(|(known, ..)| *known == name);
        if let Some((_, metric, unit)) = find(self.gauges) {
            readings.gauge(*metric, unit, tags, value);
        } else if let Some((_, metric, unit)) = find(self.counters) {
            readings.counter(*metric, unit, tags, value, None);
        }
    }

    /// Returns the server's names, gauges first.
    pub(crate) fn names(self) -> impl Iterator<Item = &'static str> {
        self.gauges.iter().chain(self.counters).map(|(name, ..)| *name)
    }
}
