//! The times of paths within a document: `values.59` of a minute is the minute's last second.
//!
//! Must never know: the values.

use crate::model::{Span, UnixMillis};

/// The time span of a document or a part of it, longest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Unit {
    Month,
    Day,
    Hour,
    Minute,
    Second,
}

/// The names of lists and documents of slots: the outer unit, the name, the unit of a slot, and the
/// number of slots.
const CONTAINERS: [(Unit, &str, Unit, i64); 9] = [
    (Unit::Month, "days", Unit::Day, 31),
    (Unit::Day, "hours", Unit::Hour, 24),
    (Unit::Day, "minutes", Unit::Minute, 24 * 60),
    (Unit::Hour, "minutes", Unit::Minute, 60),
    (Unit::Hour, "values", Unit::Minute, 60),
    (Unit::Hour, "seconds", Unit::Second, 60 * 60),
    (Unit::Minute, "seconds", Unit::Second, 60),
    (Unit::Minute, "values", Unit::Second, 60),
    // `values.59.59` of an hour: the lists of a minute's seconds have no name.
    (Unit::Minute, "", Unit::Second, 60),
];

/// A document by its unit and start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Document {
    start: UnixMillis,
    unit: Unit,
}

/// A part of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DocumentPart {
    /// The start of the part.
    pub(super) at: UnixMillis,
    pub(super) unit: Unit,
    /// The name of a field in the part; `None` if the part is the value itself.
    pub(super) name: Option<String>,
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Self::Month => "month",
            Self::Day => "day",
            Self::Hour => "hour",
            Self::Minute => "minute",
            Self::Second => "second",
        }
    }

    fn span(self) -> Span {
        match self {
            Self::Month => Span::Months(1),
            Self::Day => Span::Fixed(86_400_000),
            Self::Hour => Span::Fixed(3_600_000),
            Self::Minute => Span::Fixed(60_000),
            Self::Second => Span::Fixed(1000),
        }
    }

    /// Returns the end of the part that begins at `start`.
    pub(super) fn end(self, start: UnixMillis) -> UnixMillis {
        self.span().next(start)
    }
}

/// Returns true when a field of this name contains slots.
pub(super) fn is_container(name: &str) -> bool {
    !name.is_empty() && CONTAINERS.iter().any(|(_, known, ..)| *known == name)
}

impl Document {
    /// Returns the document that begins at a time.
    ///
    /// # Errors
    /// The time is not the start of a document of this unit.
    pub(super) fn new(name: &str, start: UnixMillis, unit: Unit) -> Result<Self, String> {
        if unit.span().start_of(start) != start {
            return Err(format!("{name}: {start} is not the start of a {}", unit.name()));
        }
        Ok(Self { start, unit })
    }

    /// Returns the part at a path; `None` for a field of the document itself.
    ///
    /// # Errors
    /// The path names no slot.
    pub(super) fn document_part(&self, path: &str) -> Result<Option<DocumentPart>, String> {
        let mut names = path.split('.').peekable();
        let mut part = DocumentPart { at: self.start, unit: self.unit, name: None };
        let mut is_inside = false;
        while let Some(first) = names.next() {
            let is_number = first.bytes().all(|byte| byte.is_ascii_digit());
            let container = if is_number { "" } else { first };
            let known = CONTAINERS.iter().find(|(of, name, ..)| {
                *of == part.unit && *name == container && (is_inside || !is_number)
            });
            let Some((_, _, unit, count)) = known else {
                if is_container(first) || is_number || names.peek().is_some() {
                    return Err(format!("{path}: a {} has no {first}", part.unit.name()));
                }
                part.name = Some(first.to_owned());
                return Ok(is_inside.then_some(part));
            };
            let slot = if is_number { Some(first) } else { names.next() };
            let number = slot.and_then(|slot| slot.parse::<u32>().ok()).map(i64::from);
            let next = |at: UnixMillis, number: i64| match unit.span() {
                Span::Fixed(width) => at.plus(number * width),
                Span::Months(_) => at,
            };
            let found = number.filter(|number| number < count).map(|number| next(part.at, number));
            let end = part.unit.end(part.at);
            let Some(at) = found.filter(|at| *at < end) else {
                let hint = if part.unit == Unit::Hour && first == "values" {
                    "; name minute and second: values.59.59"
                } else {
                    ""
                };
                let slot = slot.unwrap_or_default();
                return Err(format!(
                    "{path}: {first} has slots up to {}, not {slot:?}{hint}",
                    count - 1
                ));
            };
            (part.at, part.unit, is_inside) = (at, *unit, true);
        }
        Ok(is_inside.then_some(part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> UnixMillis {
        UnixMillis(text.parse::<jiff::Timestamp>().unwrap().as_millisecond())
    }

    #[test]
    fn paths_name_times() {
        let check = |unit: Unit, start: &str, path: &str, expected: &str| {
            let document = Document::new("date", at(start), unit).unwrap();
            let shown = match document.document_part(path) {
                Ok(None) => "of the document".to_owned(),
                Ok(Some(DocumentPart { at, unit, name })) => {
                    format!("{at} {} {}", unit.name(), name.unwrap_or_default())
                }
                Err(fault) => fault,
            };
            assert_eq!(shown.trim_end(), expected, "{path}");
        };
        let month = "2015-08-01T00:00:00Z";
        check(Unit::Month, month, "butterflies", "of the document");
        check(Unit::Month, month, "days.17.bees", "2015-08-18T00:00:00Z day bees");
        check(
            Unit::Month,
            month,
            "days.17.hours.5.minutes.54.bees",
            "2015-08-18T05:54:00Z minute bees",
        );
        check(
            Unit::Month,
            month,
            "days.31.bees",
            "days.31.bees: days has slots up to 30, not \"31\"",
        );
        let february = "2015-02-01T00:00:00Z";
        check(Unit::Month, february, "days.28", "days.28: days has slots up to 30, not \"28\"");
        check(Unit::Month, month, "hours.1", "hours.1: a month has no hours");
        check(Unit::Month, month, "days.1.values.3", "days.1.values.3: a day has no values");
        let hour = "2013-10-10T23:00:00Z";
        check(Unit::Hour, hour, "values.59", "2013-10-10T23:59:00Z minute");
        check(Unit::Hour, hour, "values.59.59", "2013-10-10T23:59:59Z second");
        check(Unit::Hour, hour, "seconds.3599", "2013-10-10T23:59:59Z second");
        check(
            Unit::Hour,
            hour,
            "values.3599",
            "values.3599: values has slots up to 59, not \"3599\"; name minute and second: values.59.59",
        );
        let minute = "2013-10-10T23:06:00Z";
        check(Unit::Minute, minute, "seconds.25", "2013-10-10T23:06:25Z second");
        check(Unit::Minute, minute, "values.25.cpu", "2013-10-10T23:06:25Z second cpu");
        check(Unit::Minute, minute, "values.x", "values.x: values has slots up to 59, not \"x\"");
        check(Unit::Minute, minute, "values", "values: values has slots up to 59, not \"\"");
        check(Unit::Minute, minute, "5", "5: a minute has no 5");
        check(Unit::Minute, minute, "values.5.a.b", "values.5.a.b: a second has no a");
        assert!(Document::new("timestamp_hour", at(minute), Unit::Hour).is_err());
    }
}
