//! Published documents: each form is a pure function of a series and its cells.
//!
//! Must never know: the store, the connection.

use bson::{Bson, DateTime, Document, RawDocumentBuf, doc};
use xxhash_rust::xxh3::xxh3_128;

use crate::{
    model::{Cell, Granularity, Kind, SeriesInfo, Span, UnixMillis},
    publish::{
        Form, PublishFault,
        fields::{metric_field, tag_field, tag_value, whole},
    },
};

/// The series, the time and the version of a document.
#[derive(Debug, Clone, Copy)]
pub struct Described<'a> {
    /// The series.
    pub info: &'a SeriesInfo,
    /// The granularity of the document.
    pub granularity: &'a Granularity,
    /// The start of the document.
    pub start: UnixMillis,
    /// The end of the document, exclusive.
    pub end: UnixMillis,
    /// The last journal record that the document contains.
    pub through: u64,
    /// The number of transactions that replaced cells of the partition.
    pub replaced: u64,
}

impl Described<'_> {
    /// Returns the identity of the document: its start in seconds, and a hash of its series.
    fn id(&self) -> String {
        let series = xxh3_128(self.info.key.as_bytes());
        format!("{}{series:032x}", id_start(self.start))
    }

    /// Returns the starts of all slots, each with its cell if it is not empty; `slots` are
    /// ascending.
    fn all<'s>(
        &self,
        slots: &'s [(UnixMillis, Cell)],
    ) -> impl Iterator<Item = (UnixMillis, Option<&'s Cell>)> {
        let mut rest = slots.iter().peekable();
        let starts = (self.start.0..self.end.0).step_by(self.granularity.width_ms.max(1) as usize);
        starts.map(move |start| {
            let found = rest.next_if(|(at, _)| at.0 == start);
            (UnixMillis(start), found.map(|(_, cell)| cell))
        })
    }

    /// Returns the name of the field with the start.
    fn timestamp_name(&self) -> &'static str {
        let span = self.granularity.document;
        let length = Span::Fixed(self.end.0 - self.start.0);
        // A partition that was created under earlier settings may have documents of another length.
        if span.next(self.start) == self.end { span } else { length }.timestamp_name()
    }

    fn number_of(&self, at: UnixMillis) -> String {
        ((at.0 - self.start.0) / self.granularity.width_ms.max(1)).to_string()
    }

    /// Returns the value of a slot in the forms with one value per slot: the average of a gauge,
    /// the sum of other kinds.
    fn number(&self, cell: &Cell) -> Option<f64> {
        let number = match self.info.kind.of_counts() {
            Kind::Gauge => cell.mean()?,
            Kind::Counter
            | Kind::Delta
            | Kind::Histogram
            | Kind::GaugeHistogram
            | Kind::DeltaHistogram => cell.sum,
        };
        number.is_finite().then_some(number)
    }
}

/// Returns the prefix of the identities of all documents that begin at `start`.
pub(crate) fn id_start(start: UnixMillis) -> String {
    format!("{}-", start.0.div_euclid(1000))
}

/// Returns the identity and the bytes of the document of a series. `slots` are the cells of the
/// document that are not empty, ascending.
///
/// # Errors
/// The name of a metric or a tag contains a NUL character.
pub fn document(
    form: Form,
    of: &Described<'_>,
    slots: &[(UnixMillis, Cell)],
) -> Result<(String, RawDocumentBuf), PublishFault> {
    let raw = RawDocumentBuf::try_from(&build(form, of, slots));
    let raw = raw.map_err(|cause| {
        PublishFault::refused(&format!("encode {}", of.info.key), &cause.to_string())
    })?;
    Ok((of.id(), raw))
}

fn build(form: Form, of: &Described<'_>, slots: &[(UnixMillis, Cell)]) -> Document {
    let key = &of.info.key;
    let samples: i64 = slots.iter().map(|(_, cell)| i64::from(cell.n)).sum();
    let total: f64 = slots.iter().map(|(_, cell)| cell.sum).sum();
    let body = match form {
        Form::Nested => nested(of, slots, total),
        Form::Levels => levels(of, slots, total),
        Form::Bucket => bucket(of, slots, samples, total),
        Form::Slots => numbers(of, slots, total),
    };
    let mut out = doc! { "_id": of.id(), "metric": key.metric() };
    if form == Form::Nested && key.tag("type").is_none() {
        out.insert("type", key.metric());
    }
    for (name, text) in key.tags() {
        let field = tag_field(name, |field| out.contains_key(field) || body.contains_key(field));
        out.insert(field, tag_value(text));
    }
    out.insert("kind", of.info.kind.as_str());
    out.insert("unit", &*of.info.unit);
    out.insert("resolution", &*of.granularity.name);
    out.insert("num_samples", whole(samples));
    out.extend(body);
    out.insert("through", of.through as i64);
    if of.replaced > 0 {
        out.insert("replaced", of.replaced as i64);
    }
    out
}

/// Returns all slots by index, also empty ones, each with all values of its cell.
fn nested(of: &Described<'_>, slots: &[(UnixMillis, Cell)], total: f64) -> Document {
    let mut values = Document::new();
    for (at, cell) in of.all(slots) {
        let mut out = doc! { "n": whole(cell.map_or(0, |cell| i64::from(cell.n))) };
        if let Some(cell) = cell {
            let numbers = [
                ("sum", cell.sum),
                ("min", cell.min),
                ("max", cell.max),
                ("first", cell.first),
                ("last", cell.last),
            ];
            out.extend(
                numbers
                    .into_iter()
                    .filter(|(_, number)| number.is_finite())
                    .map(|(name, number)| (name.to_owned(), Bson::Double(number))),
            );
        }
        values.insert(of.number_of(at), out);
    }
    let mut body = Document::new();
    body.insert(of.timestamp_name(), date(of.start));
    body.insert("total_samples", total);
    body.insert("values", values);
    body
}

/// Returns a list of all slots with their dates; empty slots have no field for the metric.
fn levels(of: &Described<'_>, slots: &[(UnixMillis, Cell)], total: f64) -> Document {
    let field = metric_field(of.info.key.metric());
    let part = |(at, cell): (UnixMillis, Option<&Cell>)| {
        let samples = cell.map_or(0, |cell| cell.n);
        let mut part = doc! { "date": date(at), "num_samples": whole(i64::from(samples)) };
        if let Some(cell) = cell.filter(|cell| cell.n > 0) {
            part.insert(field.clone(), cell.sum);
        }
        Bson::Document(part)
    };
    let parts: Vec<_> = of.all(slots).map(part).collect();
    let mut body = doc! { "date": date(of.start) };
    body.insert(field.clone(), total);
    body.insert(list_name(of.granularity.width_ms), parts);
    body
}

/// Returns a list of the slots with samples, as measurements.
fn bucket(of: &Described<'_>, slots: &[(UnixMillis, Cell)], samples: i64, total: f64) -> Document {
    const SECOND_MS: i64 = 1000;
    let field = metric_field(of.info.key.metric());
    let measurement = |(at, cell): &(UnixMillis, Cell)| {
        let mut out = doc! { "timestamp": date(*at) };
        out.insert(field.clone(), of.number(cell)?);
        Some(Bson::Document(out))
    };
    let measurements: Vec<_> = slots.iter().filter_map(measurement).collect();
    let mut body = doc! { "start_date": date(of.start), "end_date": date(of.end.minus(SECOND_MS)) };
    body.insert("measurements", measurements);
    body.insert("transaction_count", whole(samples));
    body.insert(format!("sum_{field}"), total);
    body
}

/// Returns one value for each slot with samples, by the index of the slot.
fn numbers(of: &Described<'_>, slots: &[(UnixMillis, Cell)], total: f64) -> Document {
    let field = metric_field(of.info.key.metric());
    let number =
        |(at, cell): &(UnixMillis, Cell)| Some((of.number_of(*at), of.number(cell)?.into()));
    let numbers: Document = slots.iter().filter_map(number).collect();
    let mut body = Document::new();
    body.insert(of.timestamp_name(), date(of.start));
    body.insert(format!("total_{field}"), total);
    body.insert(list_name(of.granularity.width_ms), numbers);
    body
}

/// Returns the name of the field that contains the slots, by the width of a slot.
fn list_name(width_ms: i64) -> &'static str {
    match width_ms {
        1000 => "seconds",
        60_000 => "minutes",
        3_600_000 => "hours",
        86_400_000 => "days",
        _ => "values",
    }
}

fn date(at: UnixMillis) -> DateTime {
    DateTime::from_millis(at.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{SeriesKey, SeriesLimits};

    const HOUR: i64 = 3_600_000;
    /// 2026-11-21T10:00:00Z.
    const START: UnixMillis = UnixMillis(1_795_255_200_000);

    fn info(metric: &str, tags: &[(&str, &str)], kind: Kind) -> SeriesInfo {
        let key = SeriesKey::new(metric, tags.iter().copied(), &SeriesLimits::default()).unwrap();
        SeriesInfo { key, kind, unit: "°C".into(), sender: "".into() }
    }

    /// Returns a document of an hour of minutes, of which two have samples.
    fn of_hour(form: Form, info: &SeriesInfo) -> Document {
        let granularity =
            Granularity::new(60_000, Span::Fixed(HOUR), Span::Fixed(6 * HOUR), Span::Months(1));
        let of = Described {
            info,
            granularity: &granularity,
            start: START,
            end: START.plus(HOUR),
            through: 42,
            replaced: 0,
        };
        let mut second = Cell::single(0, 41.0);
        second.merge(&Cell::single(30_000, 43.0));
        build(form, &of, &[(START, Cell::single(5, 40.0)), (START.plus(120_000), second)])
    }

    #[test]
    fn a_nested_document_has_every_slot_and_the_totals() {
        let found = of_hour(Form::Nested, &info("temp", &[("sensor_id", "12345")], Kind::Gauge));
        assert_eq!(found.get_i32("sensor_id").unwrap(), 12345);
        assert_eq!(found.get_str("type").unwrap(), "temp");
        assert_eq!(found.get_datetime("timestamp_hour").unwrap(), &date(START));
        assert_eq!(found.get_i32("num_samples").unwrap(), 3);
        assert_eq!(found.get_i64("through").unwrap(), 42);
        assert_eq!(found.get_f64("total_samples").unwrap(), 124.0);
        let values = found.get_document("values").unwrap();
        assert_eq!(values.len(), 60);
        assert_eq!(values.get_document("1").unwrap(), &doc! { "n": 0 });
        let second =
            doc! { "n": 2, "sum": 84.0, "min": 41.0, "max": 43.0, "first": 41.0, "last": 43.0 };
        assert_eq!(values.get_document("2").unwrap(), &second);
    }

    #[test]
    fn the_other_forms_have_one_number_for_a_slot() {
        let info = info("temp.out", &[("type", "roof"), ("date", "x")], Kind::Gauge);
        let bucket = of_hour(Form::Bucket, &info);
        assert_eq!(bucket.get_datetime("end_date").unwrap(), &date(START.plus(HOUR - 1000)));
        let expected = vec![
            Bson::Document(doc! { "timestamp": date(START), "temp_out": 40.0 }),
            Bson::Document(doc! { "timestamp": date(START.plus(120_000)), "temp_out": 42.0 }),
        ];
        assert_eq!(bucket.get_array("measurements").unwrap(), &expected);
        assert_eq!(bucket.get_i32("transaction_count").unwrap(), 3);
        assert_eq!(bucket.get_f64("sum_temp_out").unwrap(), 124.0);
        assert_eq!(bucket.get_str("type").unwrap(), "roof");
        assert_eq!(bucket.get_str("tag_date").unwrap(), "x");

        let slots = of_hour(Form::Slots, &info);
        assert_eq!(slots.get_document("minutes").unwrap(), &doc! { "0": 40.0, "2": 42.0 });
        assert_eq!(slots.get_f64("total_temp_out").unwrap(), 124.0);

        let levels = of_hour(Form::Levels, &info);
        let minutes = levels.get_array("minutes").unwrap();
        let empty = doc! { "date": date(START.plus(60_000)), "num_samples": 0 };
        assert_eq!((minutes.len(), &minutes[1]), (60, &Bson::Document(empty)));
        assert_eq!(levels.get_f64("temp_out").unwrap(), 124.0);
    }

    #[test]
    fn the_identity_depends_on_series_and_start_only() {
        let one = info("a", &[("b", "c")], Kind::Gauge);
        let id = |form, info: &SeriesInfo| of_hour(form, info).get_str("_id").unwrap().to_owned();
        assert_eq!(id(Form::Nested, &one), id(Form::Slots, &one));
        assert_ne!(id(Form::Nested, &one), id(Form::Nested, &info("a", &[], Kind::Gauge)));
    }
}
