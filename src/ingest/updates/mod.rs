//! Updates in MongoDB's syntax for documents of slots: `$inc` of a slot is a count, `$set` of a
//! slot is a reading. Each update becomes samples of a batch.
//!
//! Must never know: HTTP, the writer. A part that cannot become a sample is refused with the reason
//! and does not affect other updates.

#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "a field for one kind of value refuses all others"
)]

mod change;
mod document_part;
mod settling;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use granary_protocol::{
    BATCHES_PER_REQUEST_MAX, DecodeError, InvalidSamples, JsonBatch, Kind, Refusal,
    SeriesDefinition,
};

use self::{
    change::{UpdateSamples, insert_samples, update_samples},
    settling::Sample,
};
use crate::shell::{
    notation::{Call, Reader, Statement},
    value::{Fields, Value},
};

/// The sender's name for requests without one.
const SENDER: &str = "updates";
/// The maximum number of refused updates that a response names.
const EXAMPLES_MAX: usize = 10;
/// The maximum size of the definitions of a request, which may list tags once for many metrics.
const DEFINITION_BYTES_MAX: usize = 32 << 20;
/// The maximum length of a name in messages, in characters.
const SHOWN_CHARS_MAX: usize = 80;

/// A change of one document.
enum Change {
    Update { query: Fields, change: Value },
    Insert(Fields),
}

/// The content of a command.
struct Command {
    collection: String,
    changes: Vec<Change>,
    /// The sender, epoch and number for deduplication.
    number: Option<(String, i64, u64)>,
}

/// A batch under construction: the samples of a kind, or of a numbered command.
#[derive(Default)]
struct BatchBuilder {
    batch: JsonBatch,
    refs: HashMap<Series, u32>,
}

/// The metric, kind and tags.
type Series = (String, Kind, Vec<(String, String)>);

/// Decodes a body of commands or of the shell's calls, in sequence. Commands without numbers become
/// two batches: counts, which are never deduplicated, and readings, which are deduplicated by their
/// times.
///
/// # Errors
/// The error names the line of the malformed part.
pub fn decode(body: &[u8]) -> Result<Vec<JsonBatch>, DecodeError> {
    let text = std::str::from_utf8(body).map_err(|cause| fault(cause.to_string()))?;
    let mut reader = Reader::new(text);
    let (mut counts, mut readings) = (BatchBuilder::default(), BatchBuilder::default());
    let mut batches: Vec<JsonBatch> = Vec::new();
    let (mut index, mut definition_bytes_left) = (0_u64, DEFINITION_BYTES_MAX);
    while !reader.is_at_end() {
        for command in commands(reader.next_statement().map_err(fault)?).map_err(fault)? {
            let mut numbered_builder = command.number.map(|(agent, epoch, seq)| {
                let mut builder = BatchBuilder::default();
                (builder.batch.batch.agent, builder.batch.batch.epoch, builder.batch.batch.seq) =
                    (agent, epoch, seq);
                builder
            });
            for change in command.changes {
                index += 1;
                let outcome = match &change {
                    Change::Update { query, change } => {
                        update_samples(&command.collection, query, change)
                    }
                    Change::Insert(document) => insert_samples(document),
                };
                match outcome {
                    Err(cause) => {
                        let builder = numbered_builder.as_mut().unwrap_or(&mut counts);
                        let series = shortened(&command.collection);
                        builder.refuse(series, format!("update {index}: {cause}"));
                    }
                    Ok(UpdateSamples { tags, samples }) => {
                        for sample in samples {
                            let builder = match (&mut numbered_builder, sample.kind) {
                                (Some(builder), _) => builder,
                                (None, Kind::Delta) => &mut counts,
                                (None, _) => &mut readings,
                            };
                            builder.add(sample, &tags, &mut definition_bytes_left)?;
                        }
                    }
                }
            }
            batches.extend(numbered_builder.map(|builder| builder.batch));
            if batches.len() + 2 > BATCHES_PER_REQUEST_MAX {
                return Err(fault(format!(
                    "more than {BATCHES_PER_REQUEST_MAX} numbered commands"
                )));
            }
        }
    }
    for BatchBuilder { mut batch, .. } in [counts, readings] {
        if !batch.batch.refs.is_empty() || batch.invalid.samples > 0 {
            SENDER.clone_into(&mut batch.batch.agent);
            batches.push(batch);
        }
    }
    Ok(batches)
}

fn fault(problem: String) -> DecodeError {
    DecodeError { location: "body".to_owned(), problem }
}

fn shortened(text: &str) -> String {
    text.chars().take(SHOWN_CHARS_MAX).collect()
}

impl BatchBuilder {
    fn refuse(&mut self, series: String, message: String) {
        let InvalidSamples { samples, examples } = &mut self.batch.invalid;
        *samples += 1;
        if examples.len() < EXAMPLES_MAX {
            let reason = InvalidSamples::REASON.to_owned();
            examples.push(Refusal { reason, series, message });
        }
    }

    fn add(
        &mut self,
        sample: Sample,
        tags: &[(String, String)],
        definition_bytes_left: &mut usize,
    ) -> Result<(), DecodeError> {
        let Sample { metric, kind, at, value } = sample;
        let batch = &mut self.batch.batch;
        let bytes = metric.len()
            + tags.iter().map(|(name, tag_value)| name.len() + tag_value.len()).sum::<usize>();
        *definition_bytes_left = definition_bytes_left.checked_sub(bytes).ok_or_else(|| {
            let problem = format!("names and tags take more than {DEFINITION_BYTES_MAX} bytes");
            fault(problem)
        })?;
        let next = batch.series.len() as u32;
        let series = (metric, kind, tags.to_vec());
        let reference = self.refs.get(&series).copied().unwrap_or(next);
        if reference == next {
            batch.series.push(SeriesDefinition {
                reference,
                metric: series.0.clone(),
                tags: series.2.clone(),
                kind,
                unit: String::new(),
            });
            self.refs.insert(series, next);
        }
        batch.refs.push(reference);
        batch.times.push(at.0);
        batch.values.push(value);
        Ok(())
    }
}

/// Returns the commands in a call, a command or a list of commands.
fn commands(statement: Statement) -> Result<Vec<Command>, String> {
    match statement {
        Statement::Calls { collection, mut calls } => match (calls.pop(), calls.is_empty()) {
            (Some(call), true) => {
                Ok(vec![Command { changes: changes_of_call(call)?, collection, number: None }])
            }
            _ => {
                Err("call one method of the collection, such as db.NAME.updateOne(...)".to_owned())
            }
        },
        Statement::Value(Value::List(values)) => values.into_iter().map(command_of).collect(),
        Statement::Value(value) => Ok(vec![command_of(value)?]),
    }
}

fn changes_of_call(Call { method, arguments }: Call) -> Result<Vec<Change>, String> {
    let mut arguments = arguments.into_iter();
    let mut next = || arguments.next().unwrap_or(Value::Null);
    match &*method {
        // Options such as upsert are ignored: every document exists already, with empty slots.
        "update" | "updateOne" | "updateMany" => Ok(vec![update(next(), next())?]),
        "insert" | "insertOne" | "insertMany" => inserts(next()),
        "bulkWrite" => {
            let Value::List(writes) = next() else {
                return Err("bulkWrite needs a list of writes".to_owned());
            };
            let mut changes = Vec::new();
            for write in writes {
                changes.extend(changes_of_write(&write)?);
            }
            Ok(changes)
        }
        other => Err(format!(
            "{} is not known; use update, updateOne, updateMany, insertOne, insertMany or bulkWrite",
            shortened(other)
        )),
    }
}

fn changes_of_write(write: &Value) -> Result<Vec<Change>, String> {
    let single = if let Value::Fields(write) = write { write.single() } else { None };
    let get = |write: &Value, name: &str| match write {
        Value::Fields(fields) => fields.get(name).cloned().unwrap_or(Value::Null),
        _ => Value::Null,
    };
    match single {
        Some(("updateOne" | "updateMany", write)) => {
            Ok(vec![update(get(write, "filter"), get(write, "update"))?])
        }
        Some(("insertOne", write)) => inserts(get(write, "document")),
        _ => Err("a write of bulkWrite must be updateOne, updateMany or insertOne".to_owned()),
    }
}

fn update(query: Value, change: Value) -> Result<Change, String> {
    match (query, change) {
        (Value::Fields(query), change @ (Value::Fields(_) | Value::List(_))) => {
            Ok(Change::Update { query, change })
        }
        _ => Err("an update needs a filter, and a document or a list with the changes".to_owned()),
    }
}

fn inserts(documents: Value) -> Result<Vec<Change>, String> {
    let documents = if let Value::List(list) = documents { list } else { vec![documents] };
    let insert = |document: Value| match document {
        Value::Fields(document) => Ok(Change::Insert(document)),
        _ => Err("an insert needs documents".to_owned()),
    };
    documents.into_iter().map(insert).collect()
}

/// Parses `{"update": NAME, "updates": [{"q", "u"}]}` or `{"insert": NAME, "documents": [...]}`.
fn command_of(value: Value) -> Result<Command, String> {
    let Value::Fields(fields) = value else {
        return Err(format!("a command must be a document, not {}", value.kind()));
    };
    let known = ["agent", "epoch", "seq", "ordered", "$db"];
    let (mut collection, mut changes, mut is_update) = (None, Vec::new(), false);
    let mut list = None;
    for (name, value) in fields.iter() {
        match (&**name, value) {
            ("update" | "insert", Value::Text(text)) => {
                is_update = &**name == "update";
                collection = Some(text.to_string());
            }
            ("updates" | "documents", Value::List(values)) => list = Some(values),
            (name, _) if known.contains(&name) => {}
            (name, _) => {
                return Err(format!(
                    "{} is not known; use update with updates, or insert with documents, and agent, \
                     epoch, seq",
                    shortened(name)
                ));
            }
        }
    }
    let (Some(collection), Some(list)) = (collection, list) else {
        return Err("a command needs update with updates, or insert with documents".to_owned());
    };
    for item in list {
        let get = |names: [&str; 2]| match item {
            Value::Fields(fields) => names.iter().find_map(|name| fields.get(name)).cloned(),
            _ => None,
        };
        if is_update {
            let part = |names| get(names).unwrap_or(Value::Null);
            changes.push(update(part(["q", "filter"]), part(["u", "update"]))?);
        } else {
            changes.extend(inserts(item.clone())?);
        }
    }
    let (epoch, seq) = (whole_number(&fields, "epoch")?, whole_number(&fields, "seq")?);
    let number = match (fields.get("agent").and_then(Value::as_text), epoch, seq) {
        (Some(agent), Some(epoch), Some(seq)) if seq > 0 => {
            Some((agent.to_string(), epoch, seq as u64))
        }
        (_, None, None) => None,
        _ => return Err("agent, epoch and seq go together; seq counts from 1".to_owned()),
    };
    Ok(Command { collection, changes, number })
}

fn whole_number(fields: &Fields, name: &str) -> Result<Option<i64>, String> {
    let found = fields.get(name).map(Value::as_whole);
    found.map(|number| number.ok_or_else(|| format!("{name} must be a whole number"))).transpose()
}
