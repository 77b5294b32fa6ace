//! Which of a server's numbers are read: its own name for each, the metric, the unit.
//!
//! Must never know: how a server is asked.

use granary_agent_kit::Readings;

/// A server's name for a number, the metric, its unit.
pub(crate) type Row = (&'static str, &'static str, &'static str);

/// What is read of a server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rows {
    /// Levels.
    pub(crate) gauges: &'static [Row],
    /// Running totals.
    pub(crate) counters: &'static [Row],
}

impl Rows {
    /// Adds a number, if it is one of these.
    pub(crate) fn read(
        self,
        (name, value): (&str, f64),
        tags: &[(&'static str, &str)],
        readings: &mut Readings,
    ) {
        let find = |rows: &'static [Row]| rows.iter().find(|(own, ..)| *own == name);
        if let Some((_, metric, unit)) = find(self.gauges) {
            readings.gauge(*metric, unit, tags, value);
        } else if let Some((_, metric, unit)) = find(self.counters) {
            readings.counter(*metric, unit, tags, value, None);
        }
    }

    /// The server's names, levels first.
    pub(crate) fn names(self) -> impl Iterator<Item = &'static str> {
        self.gauges.iter().chain(self.counters).map(|(name, ..)| *name)
    }
}
