//! The connection to MongoDB: blocking calls for one thread, each within a time limit.
//!
//! Must never know: the contents of documents, when something is written.

use std::{collections::BTreeMap, pin::pin, time::Duration};

use bson::{Bson, Document, RawArrayBuf, RawDocumentBuf, doc, rawdoc};
use mongodb::{Client, error::Error};
use tokio::{
    runtime::{Builder, Runtime},
    time::timeout,
};

use crate::{
    model::UnixMillis,
    publish::{MongoUri, PublishFault, document::id_start},
};

/// The collection that contains the mark of each other collection: how far it was published.
const MARKS: &str = "granary";
/// The number of [`POLL_INTERVAL`]s after which a call fails.
const POLLS_MAX: u32 = 150;
/// The interval at which a waiting call checks whether the daemon is stopping.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// The code of a duplicate key: the collection contains a newer document.
const DUPLICATE_KEY: i32 = 11000;
/// The time within which a majority of the servers must confirm a write.
const CONFIRM_MS_MAX: i32 = 20_000;

/// Documents that MongoDB confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Written {
    /// Documents that were inserted or replaced.
    pub documents: u64,
    /// Documents that were not written because the collection contains newer ones.
    pub superseded: u64,
    /// Bytes of the command.
    pub bytes: u64,
}

/// A connection, which opens when it is first used.
pub struct Connection {
    runtime: Runtime,
    client: Client,
    go_on: Box<dyn Fn() -> bool + Send>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Connection")
    }
}

impl Connection {
    /// Creates a connection. Waiting calls end when `go_on` returns false.
    ///
    /// # Errors
    /// The connection string or its certificates cannot be used.
    pub fn new(
        uri: &MongoUri,
        go_on: impl Fn() -> bool + Send + 'static,
    ) -> Result<Self, PublishFault> {
        let fault = |cause: String| PublishFault::refused("begin", &cause);
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("mongodb")
            .enable_all()
            .build()
            .map_err(|cause| fault(cause.to_string()))?;
        let client = runtime.block_on(async {
            let mut options = uri.client_options().await?;
            options.max_pool_size = Some(2);
            Client::with_options(options).map_err(|_| uri.invalid_text())
        });
        let client = client.map_err(fault)?;
        Ok(Self { runtime, client, go_on: Box::new(go_on) })
    }

    /// Returns the marks of collections.
    ///
    /// # Errors
    /// MongoDB cannot be reached, or refuses.
    pub fn marks(&self, database: &str) -> Result<BTreeMap<String, String>, PublishFault> {
        let marks = self.client.database(database).collection::<Document>(MARKS);
        self.run(&format!("read {database}.{MARKS}"), async {
            let (mut found, mut cursor) = (BTreeMap::new(), marks.find(doc! {}).await?);
            while cursor.advance().await? {
                let row = cursor.deserialize_current()?;
                if let (Ok(name), Ok(mark)) = (row.get_str("_id"), row.get_str("mark")) {
                    found.insert(name.to_owned(), mark.to_owned());
                }
            }
            Ok(found)
        })
    }

    /// Stores the mark of a collection durably.
    ///
    /// # Errors
    /// MongoDB cannot be reached, or refuses.
    pub fn set_mark(
        &self,
        database: &str,
        collection: &str,
        mark: &str,
    ) -> Result<(), PublishFault> {
        let row = rawdoc! { "_id": collection, "mark": mark };
        let change = rawdoc! { "q": { "_id": collection }, "u": row, "upsert": true };
        self.update(database, MARKS, [change]).map(|_| ())
    }

    /// Inserts documents, or replaces older ones with the same `_id`, durably.
    ///
    /// # Errors
    /// MongoDB cannot be reached, or refuses. Some documents may be written nevertheless.
    pub fn replace(
        &self,
        database: &str,
        collection: &str,
        through: u64,
        documents: Vec<(String, RawDocumentBuf)>,
    ) -> Result<Written, PublishFault> {
        let through = through as i64;
        self.update(
            database,
            collection,
            documents.into_iter().map(|(id, document)| {
                let older = rawdoc! { "_id": id, "through": { "$lte": through } };
                rawdoc! { "q": older, "u": document, "upsert": true }
            }),
        )
    }

    /// Deletes the documents that begin at `start` and are older than the last replacement of cells
    /// in their partition: their field `replaced` is missing or less than the given number.
    ///
    /// # Errors
    /// MongoDB cannot be reached, or refuses.
    pub fn delete_older(
        &self,
        database: &str,
        collection: &str,
        start: UnixMillis,
        replaced: u64,
    ) -> Result<(), PublishFault> {
        let first = id_start(start);
        // In ASCII, `.` follows the hyphen at the end of `first`.
        let end = format!("{}.", first.trim_end_matches('-'));
        let older = doc! {
            "_id": { "$gte": first, "$lt": end },
            "replaced": { "$not": { "$gte": replaced as i64 } },
        };
        let operation = format!("delete from {database}.{collection}");
        let documents = self.client.database(database).collection::<Document>(collection);
        self.run(&operation, async { documents.delete_many(older).await.map(|_| ()) })
    }

    /// Returns the names of all collections of a database.
    ///
    /// # Errors
    /// MongoDB cannot be reached, or refuses.
    pub fn collections(&self, database: &str) -> Result<Vec<String>, PublishFault> {
        let database_name = database;
        let database = self.client.database(database);
        self.run(&format!("list the collections of {database_name}"), async {
            database.list_collection_names().await
        })
    }

    /// Drops a collection, and removes its mark.
    ///
    /// # Errors
    /// MongoDB cannot be reached, or refuses.
    pub fn drop_collection(&self, database: &str, collection: &str) -> Result<(), PublishFault> {
        let name = format!("drop {database}.{collection}");
        let database = self.client.database(database);
        self.run(&name, async {
            database.collection::<Document>(collection).drop().await?;
            let marks = database.collection::<Document>(MARKS);
            marks.delete_one(doc! { "_id": collection }).await.map(|_| ())
        })
    }

    /// Runs an unordered update command, and checks all errors in its answer.
    fn update(
        &self,
        database: &str,
        collection: &str,
        changes: impl IntoIterator<Item = RawDocumentBuf>,
    ) -> Result<Written, PublishFault> {
        let mut updates = RawArrayBuf::new();
        changes.into_iter().for_each(|change| updates.push(change));
        let command = rawdoc! {
            "update": collection,
            "updates": updates,
            "ordered": false,
            "writeConcern": { "w": "majority", "j": true, "wtimeout": CONFIRM_MS_MAX },
        };
        let bytes = command.as_bytes().len() as u64;
        let operation = format!("write {database}.{collection}");
        let database = self.client.database(database);
        let answer = self.run(&operation, async { database.run_raw_command(command).await })?;
        let superseded = judge(&operation, &answer)?;
        let documents = answer
            .get("n")
            .and_then(|n| n.as_i64().or_else(|| n.as_i32().map(i64::from)))
            .unwrap_or(0);
        Ok(Written { documents: documents.max(0) as u64, superseded, bytes })
    }

    /// Checks that the daemon is not stopping.
    ///
    /// # Errors
    /// [`PublishFault::Stopping`] when it is.
    pub fn check_running(&self) -> Result<(), PublishFault> {
        if (self.go_on)() { Ok(()) } else { Err(PublishFault::Stopping) }
    }

    /// Runs a call of the driver until it returns, its time is over, or the daemon stops.
    fn run<T>(
        &self,
        operation: &str,
        call: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, PublishFault> {
        self.check_running()?;
        self.runtime.block_on(async {
            let mut call = pin!(call);
            for _ in 0..POLLS_MAX {
                if let Ok(outcome) = timeout(POLL_INTERVAL, &mut call).await {
                    return outcome.map_err(|cause| PublishFault::of(operation, &cause));
                }
                self.check_running()?;
            }
            Err(PublishFault::Slow((POLL_INTERVAL * POLLS_MAX).as_secs()))
        })
    }
}

/// Returns the number of documents of an update that newer documents supersede.
///
/// # Errors
/// A document was refused for another reason, or the majority did not confirm.
fn judge(operation: &str, answer: &Document) -> Result<u64, PublishFault> {
    let judged = |fault: &Document| {
        let code = fault.get_i32("code").unwrap_or_default();
        let text = fault.get_str("errmsg").unwrap_or("no message");
        PublishFault::of_code(operation, code, &format!("{text} (code {code})"))
    };
    if let Ok(fault) = answer.get_document("writeConcernError") {
        return Err(judged(fault));
    }
    let mut superseded = 0;
    let faults = answer.get_array("writeErrors").map_or(&[][..], Vec::as_slice);
    for fault in faults.iter().filter_map(Bson::as_document) {
        if fault.get_i32("code").ok() != Some(DUPLICATE_KEY) {
            return Err(judged(fault));
        }
        superseded += 1;
    }
    Ok(superseded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_within_an_answer_are_found() {
        let newer = doc! { "index": 0, "code": 11000, "errmsg": "E11000 duplicate key" };
        let answer = doc! { "ok": 1, "n": 3, "writeErrors": [newer.clone(), newer.clone()] };
        let judge = |answer| judge("write", answer);
        assert_eq!(judge(&answer), Ok(2));
        let other = doc! { "index": 1, "code": 121, "errmsg": "failed validation" };
        let answer = doc! { "ok": 1, "n": 0, "writeErrors": [newer, other] };
        let refused = PublishFault::refused("write", "failed validation (code 121)");
        assert_eq!(judge(&answer), Err(refused));
        let unsure =
            doc! { "ok": 1, "n": 1, "writeConcernError": { "code": 64, "errmsg": "late" } };
        assert_eq!(judge(&unsure), Err(PublishFault::Unreachable("late (code 64)".to_owned())));
        assert_eq!(judge(&doc! { "ok": 1, "n": 1 }), Ok(0));
    }
}
