//! Answers as tables. Times are UTC, those of a chart with a time zone in that one.

use std::{collections::BTreeMap, fmt::Write as _};

use comfy_table::{
    Cell, CellAlignment, ColumnConstraint, ContentArrangement, Table, presets::UTF8_BORDERS_ONLY,
};

use super::view::{View, fold, short};
use crate::{
    cli::screen,
    model::UnixMillis,
    query::{DocumentsAnswer, LevelsDocument, SenderEntry, SeriesAnswer, SeriesEntry},
};

/// Longer names of columns are numbers, explained above the table.
const LABEL_MAX: usize = 16;
/// Blanks between columns.
const GAP: usize = 2;

/// A table as wide as the screen, where names take several lines before numbers do.
fn table(header: impl IntoIterator<Item = String>) -> Table {
    let header: Vec<_> = header.into_iter().collect();
    let mut table = Table::new();
    table.load_preset(UTF8_BORDERS_ONLY).set_header(&header);
    if let Ok(columns) = u16::try_from(screen::columns()) {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(columns);
        for (column, head) in table.column_iter_mut().zip(&header) {
            if !matches!(&**head, "series" | "metric" | "tags" | "sender") {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
    }
    table
}

/// A series as `metric{tag=value}`.
pub(in crate::cli) fn name(series: &SeriesEntry) -> String {
    name_of(&series.metric, &series.tags)
}

/// The same of its parts.
pub(in crate::cli) fn name_of(metric: &str, tags: &BTreeMap<String, String>) -> String {
    let pairs = pairs(tags);
    screen::text(metric) + &if pairs.is_empty() { pairs } else { format!("{{{pairs}}}") }
}

fn pairs(tags: &BTreeMap<String, String>) -> String {
    let tags: Vec<_> = tags.iter().map(|(tag, value)| format!("{tag}={value}")).collect();
    screen::text(&tags.join(","))
}

fn right(text: impl ToString) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

fn number(value: Option<f64>) -> Cell {
    right(value.map_or_else(|| "-".to_owned(), short))
}

/// A row for each sender.
pub(in crate::cli) fn senders(senders: &[SenderEntry]) -> String {
    let header = ["sender", "heard", "series", "epoch", "number"].map(str::to_owned);
    let mut table = table(header);
    for own in senders {
        let latest = own.epochs.first();
        let agent = screen::text(&own.agent);
        let heard = UnixMillis(own.heard).to_string();
        let epoch = latest.map_or(String::new(), |latest| latest.epoch.to_string());
        let number = latest.map_or(String::new(), |latest| latest.seq.to_string());
        table.add_row([agent, heard, own.series.to_string(), epoch, number]);
    }
    table.to_string()
}

/// A row for each slot, a column for each series: as many next to each other as there is room for.
pub(super) fn chart(view: &View<'_>, columns: usize) -> String {
    let mut out = String::new();
    if !view.rows.is_empty() {
        let head = format!("time ({}), {}", view.times.zone_name, view.answer.resolution);
        let is_long = view.labels.len() > 1
            && view.labels.iter().any(|label| label.chars().count() > LABEL_MAX);
        let mut heads = view.labels.clone();
        if is_long {
            for (number, head) in (1..).zip(&mut heads) {
                let named = format!("#{number} {head}\n");
                out.push_str(&fold(&named, columns));
                *head = format!("#{number}");
            }
        }
        let texts = view.answer.series.iter().map(|series| {
            let text = |row| series.points.get(row).and_then(|(_, value)| *value);
            view.rows.clone().map(|row| text(row).map_or("-".to_owned(), short)).collect()
        });
        let numbers: Vec<(String, Vec<String>)> = heads.into_iter().zip(texts).collect();
        let times = view.rows.clone().map(|row| {
            let mark = if view.is_open(row) { " *" } else { "" };
            format!("{}{mark}", view.times.text(view.start(row)))
        });
        out.push_str(&blocks(&head, &times.collect::<Vec<_>>(), &numbers, columns));
    }
    for remark in view.remarks() {
        out.push_str(&fold(&screen::text(&remark), columns));
        out.push('\n');
    }
    out
}

/// Columns of numbers behind one of times, in blocks below each other.
fn blocks(
    head: &str,
    times: &[String],
    numbers: &[(String, Vec<String>)],
    columns: usize,
) -> String {
    let longest = |head: &str, texts: &[String]| {
        let lengths = texts.iter().map(|text| text.chars().count());
        lengths.max().unwrap_or(0).max(head.chars().count())
    };
    let first = longest(head, times);
    let widths: Vec<_> = numbers.iter().map(|(head, texts)| longest(head, texts) + GAP).collect();
    let (mut out, mut from) = (String::new(), 0);
    while from < numbers.len() {
        let mut used = first + widths[from];
        let mut to = from + 1;
        while to < numbers.len() && used + widths[to] <= columns {
            used += widths[to];
            to += 1;
        }
        let mut line = |time: &str, text: &dyn Fn(usize) -> String| {
            let mut own = format!("{time:<first$}");
            for (index, width) in widths.iter().enumerate().take(to).skip(from) {
                write!(own, "{:>width$}", text(index)).unwrap_or_default();
            }
            own.push('\n');
            out.push_str(&own);
        };
        line(head, &|index| numbers[index].0.clone());
        for (row, time) in times.iter().enumerate() {
            line(time, &|index| numbers[index].1[row].clone());
        }
        out.push('\n');
        from = to;
    }
    out
}

/// A row for each document, or for each unfolded slot.
pub(super) fn documents(answer: &DocumentsAnswer) -> String {
    let own = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let (DocumentsAnswer::Documents { notes, .. }
    | DocumentsAnswer::Levels { notes, .. }
    | DocumentsAnswer::Rows { notes, .. }) = answer;
    let notes: Vec<_> =
        notes.iter().map(|note| format!("\nnote: {}", screen::text(note))).collect();
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
                    right(slots.len()),
                    right(filled),
                    right(document.num_samples),
                    number(Some(document.total_samples)),
                ]);
            }
            table.to_string()
        }
        DocumentsAnswer::Levels { documents, .. } => levels(documents),
        DocumentsAnswer::Rows { rows, .. } => {
            let mut table = table(own(&["date", "metric", "tags", "value"]));
            for row in rows {
                table.add_row([
                    Cell::new(&row.date),
                    Cell::new(screen::text(&row.metric)),
                    Cell::new(pairs(&row.tags)),
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
                right(day.num_samples),
                number(Some(day.total_samples)),
                right(hours.count()),
                right(minutes.count()),
            ]);
        }
    }
    table.to_string()
}

/// A row for each value of an expression.
pub(super) fn values(time: &str, rows: Vec<[String; 3]>, notes: &[String]) -> String {
    let notes: Vec<_> = notes.iter().map(|note| format!("\n{}", screen::text(note))).collect();
    let notes = notes.concat();
    if rows.is_empty() {
        return format!("nothing matches{notes}");
    }
    let mut table = table(["series", time, "value"].map(str::to_owned));
    for [series, at, value] in rows {
        table.add_row([Cell::new(series), Cell::new(at), right(screen::text(&value))]);
    }
    format!("{table}{notes}")
}

/// A row for each series.
pub(in crate::cli) fn series(answer: &SeriesAnswer) -> String {
    let mut table = table(["series", "kind", "unit"].map(str::to_owned));
    for series in &answer.series {
        table.add_row([name(series), series.kind.to_string(), screen::text(&series.unit)]);
    }
    let notes = answer.notes.iter().map(|note| format!("\n{}", screen::text(note)));
    let notes: String = notes.collect();
    if answer.series.is_empty() {
        return format!("no series{notes}");
    }
    format!("{table}\n{} of {} series{notes}", answer.series.len(), answer.total)
}
