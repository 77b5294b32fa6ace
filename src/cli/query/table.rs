//! Answers as tables. Times are UTC, those of a chart with a time zone in that one.

use comfy_table::{Cell, CellAlignment, Table, presets::UTF8_BORDERS_ONLY};

use crate::{
    model::UnixMillis,
    query::{
        ChartAnswer, DocumentsAnswer, LevelsDocument, SenderEntry, SeriesAnswer, SeriesEntry,
        time_zone,
    },
};

fn table(header: impl IntoIterator<Item = String>) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_BORDERS_ONLY).set_header(header.into_iter().collect::<Vec<_>>());
    table
}

/// A series as `metric{tag=value}`.
pub(in crate::cli) fn name(series: &SeriesEntry) -> String {
    let tags: Vec<_> = series.tags.iter().map(|(tag, value)| format!("{tag}={value}")).collect();
    format!("{}{{{}}}", series.metric, tags.join(","))
}

fn number(value: Option<f64>) -> Cell {
    let text = value.map_or_else(|| "-".to_owned(), |value| format!("{value}"));
    Cell::new(text).set_alignment(CellAlignment::Right)
}

/// A row for each sender.
pub(in crate::cli) fn senders(senders: &[SenderEntry]) -> String {
    let header = ["sender", "heard", "series", "epoch", "number"].map(str::to_owned);
    let mut table = table(header);
    for own in senders {
        let latest = own.epochs.first();
        let agent: String = own.agent.escape_debug().collect();
        let heard = UnixMillis(own.heard).to_string();
        let epoch = latest.map_or(String::new(), |latest| latest.epoch.to_string());
        let number = latest.map_or(String::new(), |latest| latest.seq.to_string());
        table.add_row([agent, heard, own.series.to_string(), epoch, number]);
    }
    table.to_string()
}

/// A row for each slot, a column for each series.
pub(super) fn chart(answer: &ChartAnswer) -> String {
    let heads = answer.series.iter().map(|series| {
        let unit = &series.series.unit;
        let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
        format!("{}\n{}{unit}", name(&series.series), series.display)
    });
    let zone = answer.time_zone.as_deref().unwrap_or("UTC");
    let mut table =
        table(std::iter::once(format!("time ({zone}), {}", answer.resolution)).chain(heads));
    let rows = answer.series.first().map_or(0, |series| series.points.len());
    for row in 0..rows {
        let points = answer.series.iter().map(|series| series.points.get(row));
        let at = points.clone().flatten().map(|(at, _)| *at).next().unwrap_or_default();
        let mut cells = vec![Cell::new(time(at, answer))];
        cells.extend(points.map(|point| number(point.and_then(|(_, value)| *value))));
        table.add_row(cells);
    }
    let notes = answer.notes.iter().map(|note| format!("note: {note}\n"));
    let nothing = if answer.series.is_empty() { "no series matches\n" } else { "" };
    let incomplete = answer.incomplete_from.map_or("", |_| "* is not over yet\n");
    format!("{table}\n{nothing}{incomplete}{}", notes.collect::<String>())
}

/// The start of a slot, marked when it is not over.
fn time(at: i64, answer: &ChartAnswer) -> String {
    let zone = answer.time_zone.as_deref().filter(|zone| *zone != "UTC");
    let zone = zone.and_then(|zone| time_zone(zone).ok());
    let local = zone.map(|zone| UnixMillis(at).timestamp().to_zoned(zone));
    let text = local.map_or_else(
        || UnixMillis(at).to_string(),
        |local| local.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
    );
    let is_over = answer.incomplete_from.is_none_or(|from| at < from);
    format!("{text}{}", if is_over { "" } else { " *" })
}

/// A row for each document, or for each unfolded slot.
pub(super) fn documents(answer: &DocumentsAnswer) -> String {
    let own = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let (DocumentsAnswer::Documents { notes, .. }
    | DocumentsAnswer::Levels { notes, .. }
    | DocumentsAnswer::Rows { notes, .. }) = answer;
    let notes: Vec<_> = notes.iter().map(|note| format!("\nnote: {note}")).collect();
    let table = match answer {
        DocumentsAnswer::Documents { documents, .. } => {
            let mut table = table(own(&[
                "document",
                "series",
                "slots",
                "filled",
                "num_samples",
                "total_samples",
            ]));
            for document in documents {
                let start = document.timestamp.values().next().cloned().unwrap_or_default();
                let slots = document.values.all();
                let filled = slots.iter().filter(|value| value.n > 0).count();
                table.add_row([
                    Cell::new(start),
                    Cell::new(name(&document.series)),
                    number(Some(slots.len() as f64)),
                    number(Some(filled as f64)),
                    number(Some(document.num_samples as f64)),
                    number(Some(document.total_samples)),
                ]);
            }
            table.to_string()
        }
        DocumentsAnswer::Levels { documents, .. } => levels(documents),
        DocumentsAnswer::Rows { rows, .. } => {
            let mut table = table(own(&["date", "metric", "tags", "value"]));
            for row in rows {
                let tags: Vec<_> =
                    row.tags.iter().map(|(tag, value)| format!("{tag}={value}")).collect();
                table.add_row([
                    Cell::new(&row.date),
                    Cell::new(&row.metric),
                    Cell::new(tags.join(",")),
                    number(row.value),
                ]);
            }
            table.to_string()
        }
    };
    table + &notes.concat()
}

/// A row for each day.
fn levels(documents: &[LevelsDocument]) -> String {
    let heads = ["day (UTC)", "series", "num_samples", "total_samples", "hours", "minutes"];
    let mut table = table(heads.map(str::to_owned));
    for document in documents {
        for day in &document.days {
            let hours = day.hours.iter().flatten();
            let minutes = hours.clone().flat_map(|hour| hour.minutes.iter().flatten());
            table.add_row([
                Cell::new(day.date.0),
                Cell::new(name(&document.series)),
                number(Some(day.num_samples as f64)),
                number(Some(day.total_samples)),
                number(Some(hours.count() as f64)),
                number(Some(minutes.count() as f64)),
            ]);
        }
    }
    table.to_string()
}

/// A row for each series.
pub(in crate::cli) fn series(answer: &SeriesAnswer) -> String {
    let mut table = table(["series", "kind", "unit"].map(str::to_owned));
    for series in &answer.series {
        table.add_row([name(series), series.kind.to_string(), series.unit.clone()]);
    }
    format!("{table}\n{} of {} series", answer.series.len(), answer.total)
}
