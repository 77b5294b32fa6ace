//! The dictionary and the states of series, read from the journal by two threads.
//!
//! Must never know: the journal's records, the files of documents.

use std::{ops::ControlFlow, panic::resume_unwind, thread};

use crossbeam_channel::{Receiver, bounded};

use crate::{
    model::{Kind, SeriesKey},
    store::{
        classes::series_classes::SeriesClasses,
        dictionary::{Dictionary, changes::SeriesUpdate, filling::Filling},
        error::StoreError,
        file::names::JOURNAL_FILE,
        journal::{Journal, series_row},
        states::SeriesStates,
    },
};

/// The maximum number of chunks of series that wait for the dictionary's thread.
const CHUNKS_AHEAD: usize = 8;

/// Reads the series of the journal with their changes, and the state of each. Another thread fills
/// the dictionary and determines the classes; only this thread reads the journal.
pub(super) fn load(
    journal: &Journal,
    (states, classes): (&mut SeriesStates, &mut SeriesClasses),
) -> Result<Dictionary, StoreError> {
    let changes = journal.changes()?;
    let count = journal.series_count()?;
    states.reserve(count);
    thread::scope(|scope| {
        let (series_out, series_in) = bounded::<Vec<u8>>(CHUNKS_AHEAD);
        let filling = scope.spawn(move || fill(series_in, changes, classes, count));
        let read = journal.load(states, |series| match series_out.send(series) {
            Ok(()) => ControlFlow::Continue(()),
            // The filling thread failed; its error is returned below.
            Err(_) => ControlFlow::Break(()),
        });
        drop(series_out);
        let filled = filling.join().unwrap_or_else(|panic| resume_unwind(panic));
        let mut dictionary = read.and(filled)?;
        dictionary.note_merged(&journal.merged()?);
        Ok(dictionary)
    })
}

/// Fills a dictionary with the definitions of series, and with their changes since.
fn fill(
    series: Receiver<Vec<u8>>,
    changes: Vec<SeriesUpdate>,
    classes: &mut SeriesClasses,
    count: usize,
) -> Result<Dictionary, StoreError> {
    let damaged = |problem| StoreError::Corrupt { file: JOURNAL_FILE.to_owned(), problem };
    let deleted = changes.iter().filter(|change| change.key.is_none()).count();
    let mut filling = Filling::with_room(count, count.saturating_sub(deleted));
    let mut changes = changes.into_iter().peekable();
    let rules = classes.rules().clone();
    for chunk in series {
        let mut rest = &*chunk;
        while !rest.is_empty() {
            let id = filling.next_id();
            let unreadable = || damaged(format!("series {} cannot be read", id.0));
            let read = series_row::take(&mut rest).ok_or_else(unreadable)?;
            let change = changes.next_if(|change| change.id == id).map(|change| change.key);
            let Some(read) = read else {
                classes.add(None);
                filling.add_deleted(Kind::Gauge);
                continue;
            };
            if !rules.is_empty() {
                // The key at the definition determines the classes, whatever the series is called
                // now.
                let defined = SeriesKey::from_bytes(read.key).ok_or_else(unreadable)?;
                classes.add(Some(rules.history(read.sender, &defined)));
            }
            let key = match change {
                Some(None) => {
                    filling.add_deleted(read.kind);
                    continue;
                }
                Some(Some(key)) => key,
                None => SeriesKey::from_bytes(read.key).ok_or_else(unreadable)?,
            };
            if !filling.add(&key, read.kind, read.unit, read.sender) {
                let problem = format!("series {} has the key {key} of another series", id.0);
                return Err(damaged(problem));
            }
        }
    }
    let count = filling.next_id().0;
    changes.next().map_or_else(
        || Ok(filling.done()),
        |change| {
            Err(damaged(format!(
                "a change names series {}, but there are only {count}",
                change.id.0
            )))
        },
    )
}
