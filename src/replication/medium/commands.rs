//! The texts of commands for MongoDB, and the judgement of their answers.
//!
//! Must never know: connections.

use bson::{Bson, Document, RawDocumentBuf, doc};

use crate::replication::{
    entry::STOPPED,
    medium::{Command, Fault, Inserted, rows::integer},
};

/// The code of a duplicate key.
const DUPLICATE_KEY: i64 = 11000;

/// Returns the change of a shard's row.
pub(super) fn shard_change(command: &Command) -> RawDocumentBuf {
    let (filter, change) = match command {
        Command::Take { shard, epoch, beat, log, holder } => (
            doc! { "_id": i32::from(*shard), "epoch": *epoch as i64, "beat": *beat, "log": *log },
            doc! { "$set": { "epoch": *epoch as i64 + 1, "holder": holder.as_str(), "beat": 0_i64 } },
        ),
        Command::Beat { shard, epoch, log, stops: true, .. } => (
            doc! { "_id": i32::from(*shard), "epoch": *epoch as i64, "log": *log },
            doc! { "$set": { "beat": STOPPED } },
        ),
        Command::Beat { shard, epoch, log, least, stops: false } => (
            doc! {
                "_id": i32::from(*shard), "epoch": *epoch as i64, "log": *log,
                "beat": { "$gte": (*least).max(0) },
            },
            doc! { "$inc": { "beat": 1_i64 } },
        ),
        Command::RaiseCut { shard, epoch, cut } => (
            doc! { "_id": i32::from(*shard), "epoch": *epoch as i64 },
            doc! { "$max": { "cut": *cut as i64 } },
        ),
        Command::RaiseFloor { shard, node, floor, joins } => {
            let mut filter = doc! { "_id": i32::from(*shard) };
            if !joins {
                filter.insert(format!("members.{node}"), doc! { "$exists": true });
            }
            (filter, doc! { "$max": { format!("members.{node}.floor"): *floor as i64 } })
        }
        Command::Strike { shard, epoch, node } => (
            doc! { "_id": i32::from(*shard), "epoch": *epoch as i64 },
            doc! { "$unset": { format!("members.{node}"): 1 } },
        ),
        Command::Leave { shard, node, heir, cut } => (
            doc! {
                "_id": i32::from(*shard),
                "cut": *cut as i64,
                format!("members.{node}"): { "$exists": true },
                format!("members.{heir}.floor"): { "$gte": *cut as i64 },
            },
            doc! { "$unset": { format!("members.{node}"): 1 } },
        ),
        _ => Default::default(),
    };
    let update = doc! { "q": filter, "u": change };
    RawDocumentBuf::try_from(&update).unwrap_or_default()
}

/// Returns the shards that a command is about.
pub(super) fn shards_of(command: &Command) -> Vec<u16> {
    match command {
        Command::Insert(entries) => entries.iter().map(|entry| entry.id.shard).collect(),
        Command::ReadEntry(id)
        | Command::Find(id)
        | Command::LastFence { through: id, .. }
        | Command::Hold { fence: id, .. } => vec![id.shard],
        Command::ReadShard(shard)
        | Command::CreateShard { shard, .. }
        | Command::Take { shard, .. }
        | Command::Beat { shard, .. }
        | Command::RaiseCut { shard, .. }
        | Command::Delete { shard, .. }
        | Command::RaiseFloor { shard, .. }
        | Command::Leave { shard, .. }
        | Command::Strike { shard, .. } => vec![*shard],
        Command::ClaimNode { .. } | Command::BeatNode { .. } | Command::ReadNodes => Vec::new(),
    }
}

/// Returns the outcomes of an insert of `count` entries.
///
/// # Errors
/// The outcome of an entry is unknown, or the answer counts other entries.
pub(super) fn inserted(answer: &Document, count: usize) -> Result<Vec<Inserted>, Fault> {
    let mut outcomes = vec![Inserted::Done; count];
    for index in duplicates(answer)? {
        let outcome = outcomes.get_mut(index);
        *outcome.ok_or_else(|| foreign("an error of no entry"))? = Inserted::Duplicate;
    }
    let done = outcomes.iter().filter(|outcome| **outcome == Inserted::Done).count();
    let is_counted = integer(answer, "n").is_some_and(|n| usize::try_from(n) == Ok(done));
    is_counted.then_some(outcomes).ok_or_else(|| foreign("another number of entries"))
}

fn foreign(what: &str) -> Fault {
    Fault(format!("the answer to a write has {what}; is a proxy before MongoDB?"))
}

/// Returns the indexes of the parts of a write that found a duplicate key.
///
/// # Errors
/// The majority did not confirm, or a part failed for another reason: the outcome is unknown.
pub(super) fn duplicates(answer: &Document) -> Result<Vec<usize>, Fault> {
    let text = |error: &Document| {
        let code = integer(error, "code").unwrap_or_default();
        let message = error.get_str("errmsg").unwrap_or("no message");
        Fault(format!("{} (code {code})", message.chars().take(300).collect::<String>()))
    };
    match answer.get("writeConcernError") {
        None => {}
        Some(Bson::Document(error)) => return Err(text(error)),
        Some(_) => return Err(foreign("an unknown error")),
    }
    let errors = match answer.get("writeErrors") {
        None => &[][..],
        Some(Bson::Array(errors)) => errors,
        Some(_) => return Err(foreign("unknown errors")),
    };
    let mut indexes = Vec::new();
    for error in errors {
        let error = error.as_document().ok_or_else(|| foreign("an unknown error"))?;
        if integer(error, "code") != Some(DUPLICATE_KEY) {
            return Err(text(error));
        }
        let index = integer(error, "index").and_then(|index| usize::try_from(index).ok());
        indexes.push(index.ok_or_else(|| foreign("an error without an index"))?);
    }
    Ok(indexes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_with_a_missing_majority_has_an_unknown_outcome() {
        let duplicate = doc! { "index": 1, "code": 11000, "errmsg": "E11000 duplicate key" };
        let answer = doc! { "ok": 1, "n": 1, "writeErrors": [duplicate.clone()] };
        assert_eq!(duplicates(&answer), Ok(vec![1]));
        let concern = doc! { "code": 64, "errmsg": "waiting for replication timed out" };
        let answer =
            doc! { "ok": 1, "writeErrors": [duplicate.clone()], "writeConcernError": concern };
        assert!(duplicates(&answer).is_err());
        let other = doc! { "index": 0, "code": 10107, "errmsg": "not primary" };
        let answer = doc! { "ok": 1, "writeErrors": [duplicate, other] };
        assert_eq!(duplicates(&answer), Err(Fault("not primary (code 10107)".to_owned())));
    }

    #[test]
    fn an_insert_is_done_only_where_the_answer_counts_it() {
        let duplicate = doc! { "index": 1, "code": 11000 };
        let answer = doc! { "ok": 1, "n": 2, "writeErrors": [duplicate.clone()] };
        let outcomes = vec![Inserted::Done, Inserted::Duplicate, Inserted::Done];
        assert_eq!(inserted(&answer, 3), Ok(outcomes));
        for (answer, reason) in [
            (doc! { "n": 2, "writeErrors": [duplicate.clone(), "text"] }, "no document"),
            (doc! { "n": 2, "writeErrors": [{ "code": 11000 }] }, "no index"),
            (doc! { "n": 2, "writeErrors": [{ "index": -1, "code": 11000 }] }, "no entry"),
            (doc! { "n": 3, "writeErrors": [{ "index": 3, "code": 11000 }] }, "no entry"),
            (doc! { "n": 3, "writeErrors": duplicate.clone() }, "no array"),
            (doc! { "n": 3, "writeConcernError": "text" }, "no document"),
            (doc! { "n": 3, "writeErrors": [duplicate.clone()] }, "too many"),
            (doc! { "n": 2 }, "too few"),
            (doc! { "ok": 1 }, "no number"),
        ] {
            assert!(inserted(&answer, 3).is_err(), "{reason}: {answer}");
        }
    }
}
