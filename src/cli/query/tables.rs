//! Charts, documents and values of expressions as tables. Times are in UTC, or in a chart's time
//! zone.

use std::fmt::Write as _;

use comfy_table::Cell;

use super::view::View;
use crate::{
    cli::{
        screen::{self, fold},
        table::{name, number, right, short, table, tags},
    },
    query::{DocumentsAnswer, LevelsDocument},
};

/// The maximum length of a column name; longer names are replaced by numbers and listed above.
const LABEL_MAX: usize = 16;
/// The number of spaces between columns.
const GAP: usize = 2;

/// Returns a table with a row per slot and a column per series, in as many blocks as needed.
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
    for note in view.notes() {
        out.push_str(&fold(&screen::text(&note), columns));
        out.push('\n');
    }
    out
}

/// Returns blocks of columns, each with the column of times.
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
            let mut line = format!("{time:<first$}");
            for (index, width) in widths.iter().enumerate().take(to).skip(from) {
                write!(line, "{:>width$}", text(index)).unwrap_or_default();
            }
            line.push('\n');
            out.push_str(&line);
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

/// Returns a table with a row per document or unfolded slot.
pub(super) fn documents(answer: &DocumentsAnswer) -> String {
    let header = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let (DocumentsAnswer::Documents { notes, .. }
    | DocumentsAnswer::Levels { notes, .. }
    | DocumentsAnswer::Rows { notes, .. }) = answer;
    let notes: Vec<_> =
        notes.iter().map(|note| format!("\nnote: {}", screen::text(note))).collect();
    let table = match answer {
        DocumentsAnswer::Documents { documents, .. } => {
            let mut table = table(header(&[
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
            let mut table = table(header(&["date", "metric", "tags", "value"]));
            for row in rows {
                table.add_row([
                    Cell::new(&row.date),
                    Cell::new(screen::text(&row.metric)),
                    Cell::new(tags(&row.tags)),
                    number(row.value),
                ]);
            }
            table.to_string()
        }
    };
    table + &notes.concat()
}

/// Returns a table with a row per day.
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

/// Returns a table with a row per value of an expression.
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
