//! The texts of commands for MongoDB, and the judgement of their answers.
//!
//! Must never know: connections.

use bson::{Bson, Document, RawDocumentBuf, doc};

use crate::replication::{
    entry::STOPPED,
    medium::{Command, Fault, rows::integer},
};

/// The code of a duplicate key.
const DUPLICATE_KEY: i64 = 11000;

/// Returns the change of a shard's row.
pub(super) fn shard_change(command: &Command) -> RawDocumentBuf {
    let (filter, change) = match command {
        Command::Take { shard, epoch, beat, holder } => (
            doc! { "_id": i32::from(*shard), "epoch": *epoch as i64, "beat": *beat },
            doc! { "$set": { "epoch": *epoch as i64 + 1, "holder": holder.as_str(), "beat": 0_i64 } },
        ),
        Command::Beat { shard, epoch, stops } => (
            doc! { "_id": i32::from(*shard), "epoch": *epoch as i64 },
            if *stops {
                doc! { "$set": { "beat": STOPPED } }
            } else {
                doc! { "$inc": { "beat": 1_i64 } }
            },
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
        _ => Default::default(),
    };
    let update = doc! { "q": filter, "u": change };
    RawDocumentBuf::try_from(&update).unwrap_or_default()
}

/// Returns the shards that a command is about.
pub(super) fn shards_of(command: &Command) -> Vec<u16> {
    match command {
        Command::Insert(entries) => entries.iter().map(|entry| entry.id.shard).collect(),
        Command::ReadEntry(id) | Command::Find(id) => vec![id.shard],
        Command::ReadShard(shard)
        | Command::CreateShard(shard)
        | Command::Take { shard, .. }
        | Command::Beat { shard, .. }
        | Command::RaiseCut { shard, .. }
        | Command::Delete { shard, .. }
        | Command::RaiseFloor { shard, .. }
        | Command::Strike { shard, .. } => vec![*shard],
        Command::BeatNode { .. } | Command::ReadNodes => Vec::new(),
    }
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
    if let Ok(error) = answer.get_document("writeConcernError") {
        return Err(text(error));
    }
    let errors = answer.get_array("writeErrors").map_or(&[][..], Vec::as_slice);
    let mut indexes = Vec::new();
    for error in errors.iter().filter_map(Bson::as_document) {
        if integer(error, "code") != Some(DUPLICATE_KEY) {
            return Err(text(error));
        }
        indexes.extend(integer(error, "index").and_then(|index| usize::try_from(index).ok()));
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
}
