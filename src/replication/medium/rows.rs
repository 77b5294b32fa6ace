//! The documents of the database: entries, rows of shards, rows of nodes.
//!
//! Must never know: connections.

use bson::{Binary, Bson, Document, RawDocument, RawDocumentBuf, rawdoc, spec::BinarySubtype};

use crate::replication::{
    entry::{Body, Entry, EntryId, NUMBER_MAX, NodeName, RECORD_BYTES_MAX, ShardRow},
    medium::{Fault, NodeRow},
};

/// Returns the document of an entry.
pub(super) fn encode_entry(entry: &Entry) -> RawDocumentBuf {
    let (key, epoch) = (entry.id.key(), entry.epoch as i64);
    match &entry.body {
        Body::Record(bytes) => {
            let record = Binary { subtype: BinarySubtype::Generic, bytes: bytes.to_vec() };
            rawdoc! { "_id": key, "e": epoch, "x": entry.nonce, "r": record }
        }
        Body::Fence => rawdoc! { "_id": key, "e": epoch, "x": entry.nonce, "fence": true },
    }
}

/// Returns the entry of a document.
///
/// # Errors
/// The document is none of an entry.
pub(super) fn decode_entry(document: &RawDocument) -> Result<Entry, Fault> {
    let read = || -> Option<Entry> {
        let id = EntryId::of_key(document.get_i64("_id").ok()?)?;
        let epoch = u64::try_from(document.get_i64("e").ok()?).ok()?;
        let nonce = document.get_i64("x").ok()?;
        let body = match document.get("r").ok()? {
            Some(_) => {
                let bytes = document.get_binary("r").ok()?.bytes;
                (bytes.len() <= RECORD_BYTES_MAX).then(|| Body::Record(bytes.into()))?
            }
            None if document.get_bool("fence").ok()? => Body::Fence,
            None => return None,
        };
        Some(Entry { id, epoch, nonce, body })
    };
    read().ok_or_else(|| damaged("an entry of the journal"))
}

/// Returns the row of a shard.
///
/// # Errors
/// The document is none of a shard.
pub(super) fn decode_shard(document: &Document) -> Result<ShardRow, Fault> {
    let read = || -> Option<ShardRow> {
        let number = |name: &str| u64::try_from(integer(document, name)?).ok();
        let mut row = ShardRow {
            log: integer(document, "log")?,
            epoch: number("epoch")?,
            beat: integer(document, "beat")?,
            cut: number("cut").filter(|cut| *cut <= NUMBER_MAX)?,
            ..ShardRow::default()
        };
        if let Ok(holder) = document.get_str("holder") {
            row.holder = Some(NodeName::parse(holder).ok()?);
        }
        for (name, member) in document.get_document("members").ok()? {
            let floor = u64::try_from(integer(member.as_document()?, "floor")?).ok()?;
            let floor = (floor <= NUMBER_MAX).then_some(floor)?;
            row.members.insert(NodeName::parse(name).ok()?, floor);
        }
        Some(row)
    };
    read().ok_or_else(|| refused_row("the row of a shard", document, "log"))
}

/// Returns the row of a node.
///
/// # Errors
/// The document is none of a node.
pub(super) fn decode_node(document: &Document) -> Result<NodeRow, Fault> {
    let read = || -> Option<NodeRow> {
        Some(NodeRow {
            node: NodeName::parse(document.get_str("_id").ok()?).ok()?,
            address: document.get_str("addr").ok()?.to_owned(),
            beat: integer(document, "beat")?,
            run: integer(document, "run")?,
            rules: document.get_str("rules").unwrap_or_default().to_owned(),
        })
    };
    read().ok_or_else(|| refused_row("the row of a node", document, "run"))
}

/// Returns a number of either width, as shells and servers write both.
pub(super) fn integer(document: &Document, name: &str) -> Option<i64> {
    match document.get(name)? {
        Bson::Int32(number) => Some(i64::from(*number)),
        Bson::Int64(number) => Some(*number),
        Bson::Double(number) if number.fract() == 0.0 => Some(*number as i64),
        _ => None,
    }
}

/// Returns the fault of a row. Rows of builds before 0.1.0 lack a field.
fn refused_row(what: &str, row: &Document, field: &str) -> Fault {
    if row.contains_key(field) {
        return damaged(what);
    }
    Fault(format!(
        "{what} has no {field:?}: a build before 0.1.0 wrote it, or another program. Write a snapshot \
         with that build, and restore it into an empty database (docs/cluster.md)"
    ))
}

fn damaged(what: &str) -> Fault {
    Fault(format!("{what} has an unknown form; a newer release or another program wrote it"))
}

#[cfg(test)]
mod tests {
    use bson::doc;

    use super::*;

    #[test]
    fn entries_survive_their_documents() {
        for body in [Body::Record([1, 2, 3][..].into()), Body::Record([][..].into()), Body::Fence] {
            let entry = Entry { id: EntryId::new(3, 9), epoch: 4, nonce: -5, body };
            assert_eq!(decode_entry(&encode_entry(&entry)), Ok(entry));
        }
    }

    #[test]
    fn foreign_documents_are_refused() {
        for document in [
            rawdoc! {},
            rawdoc! { "_id": "x", "e": 1_i64, "x": 1_i64, "fence": true },
            rawdoc! { "_id": 7_i64, "e": -1_i64, "x": 1_i64, "fence": true },
            rawdoc! { "_id": 7_i64, "e": 1_i64, "x": 1_i64 },
            rawdoc! { "_id": 7_i64, "e": 1_i64, "x": 1_i64, "r": "text" },
        ] {
            assert!(decode_entry(&document).is_err(), "{document:?}");
        }
        assert!(
            decode_shard(&doc! { "log": 1, "epoch": 1, "beat": 0, "cut": -1, "members": {} })
                .is_err()
        );
        // Numbers above the largest one would be no keys.
        let above = NUMBER_MAX as i64 + 1;
        let row = |cut: i64, floor: i64| {
            let members = doc! { "a": { "floor": floor } };
            doc! { "log": 1, "epoch": 1, "beat": 0, "cut": cut, "members": members }
        };
        assert!(decode_shard(&row(above - 1, above - 1)).is_ok());
        assert!(decode_shard(&row(above, 0)).is_err() && decode_shard(&row(0, above)).is_err());
        let members = doc! { "a": { "floor": 7_i64 } };
        let row = doc! { "epoch": 1.0, "beat": -1, "cut": 2, "members": members };
        // The rows of a build before have a remedy.
        let Fault(text) = decode_shard(&row).unwrap_err();
        assert!(text.contains("no \"log\"") && text.contains("empty database"), "{text}");
        let node = doc! { "_id": "a", "addr": "", "beat": 1_i64, "rules": "" };
        let Fault(text) = decode_node(&node).unwrap_err();
        assert!(text.contains("no \"run\"") && text.contains("empty database"), "{text}");
        let mut row = row;
        row.insert("log", -8_i64);
        let row = decode_shard(&row).unwrap();
        assert_eq!(row.log, -8);
        assert_eq!((row.epoch, row.beat, row.cut, row.members.len()), (1, -1, 2, 1));
    }
}
