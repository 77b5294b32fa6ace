//! The log in MongoDB.
//!
//! Writes wait for the majority and its journals, reads return what a majority has. All commands of
//! a shard are causally consistent: a read sees everything that an earlier answer showed, also
//! after a failover. Must never know: the roles.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bson::{Document, RawArrayBuf, RawDocumentBuf, Timestamp, doc, raw::cstr, rawdoc};
use mongodb::{
    Client, ClientSession, Collection,
    error::Error,
    options::{FindOptions, ReadConcern},
};
use parking_lot::Mutex;
use tokio::time::timeout;

use crate::{
    publish::{MongoUri, driver_cause},
    replication::{
        entry::{Entry, EntryId, NUMBER_MAX},
        medium::{
            Answer, Command, FOUND_BYTES_MAX, FOUND_ENTRIES_MAX, Fault, Inserted, Medium,
            NODES_MAX, Pending,
            commands::{duplicates, inserted, shard_change, shards_of},
            rows::{decode_entry, decode_node, decode_shard, encode_entry, integer},
        },
    },
};

const JOURNAL: &str = "journal";
const SHARDS: &str = "shards";
const NODES: &str = "nodes";
/// Texts that all nodes share.
const TEXTS: &str = "shared";
/// The time after which the outcome of a command counts as unknown.
const COMMAND_SECONDS_MAX: u64 = 5;
/// The time for a renewal of a lease, so that a lost one can be repeated within the lease.
const BEAT_SECONDS_MAX: u64 = 2;
/// The time for inserts, deletions and searches for entries, which can be large.
const BULK_SECONDS_MAX: u64 = 20;
/// The maximum number of connections: each shard has three lanes.
const CONNECTIONS_MAX: u32 = 64;

/// A database of a replica set.
#[derive(Clone)]
pub struct MongoMedium(Arc<Inner>);

struct Inner {
    client: Client,
    database: String,
    /// The times of the last operations by shard.
    seen: Mutex<BTreeMap<u16, Timestamp>>,
}

impl std::fmt::Debug for MongoMedium {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MongoMedium")
    }
}

impl MongoMedium {
    /// Creates a client, which connects when it is first used.
    ///
    /// # Errors
    /// The connection string or its certificates cannot be used.
    pub async fn open(uri: &MongoUri, database: &str) -> Result<Self, Fault> {
        let mut options = uri.client_options().await.map_err(Fault)?;
        options.max_pool_size = Some(CONNECTIONS_MAX);
        let client = Client::with_options(options).map_err(|_| Fault(uri.invalid_text()))?;
        let (database, seen) = (database.to_owned(), Mutex::default());
        Ok(Self(Arc::new(Inner { client, database, seen })))
    }
}

impl MongoMedium {
    /// Returns a text that all nodes share. The first node's proposal is stored.
    ///
    /// # Errors
    /// MongoDB does not answer, or the stored document has another form.
    pub async fn shared_text(&self, name: &str, proposed: &str) -> Result<String, Fault> {
        let read = async {
            let session = self.0.client.start_session().causal_consistency(true).await;
            let mut session = session.map_err(|error| fault(&error))?;
            let proposal = rawdoc! { "_id": name, "text": proposed };
            self.0.write(Write::Insert, TEXTS, [proposal], &mut session).await?;
            let rows = self.0.find_rows(TEXTS, doc! { "_id": name }, &mut session).await?;
            let text = rows.first().and_then(|row| row.get_str("text").ok().map(str::to_owned));
            text.ok_or_else(|| Fault(format!("the document {name:?} of {TEXTS} is damaged")))
        };
        let limit = Duration::from_secs(COMMAND_SECONDS_MAX);
        timeout(limit, read).await.unwrap_or_else(|_| {
            Err(Fault(format!("MongoDB did not answer within {COMMAND_SECONDS_MAX} seconds")))
        })
    }
}

impl Medium for MongoMedium {
    fn execute(&self, command: Command) -> Pending {
        let inner = self.0.clone();
        Box::pin(async move {
            let seconds = match command {
                Command::Insert(_)
                | Command::Delete { .. }
                | Command::Find(_)
                | Command::LastFence { .. } => BULK_SECONDS_MAX,
                Command::Beat { .. } => BEAT_SECONDS_MAX,
                _ => COMMAND_SECONDS_MAX,
            };
            let outcome = timeout(Duration::from_secs(seconds), inner.execute(command)).await;
            outcome.unwrap_or_else(|_| {
                Err(Fault(format!("MongoDB did not answer within {seconds} seconds")))
            })
        })
    }
}

impl Inner {
    async fn execute(&self, command: Command) -> Result<Answer, Fault> {
        let shards = shards_of(&command);
        let session = self.client.start_session().causal_consistency(true).await;
        let mut session = session.map_err(|error| fault(&error))?;
        let seen = {
            let seen = self.seen.lock();
            shards.iter().filter_map(|shard| seen.get(shard)).max().copied()
        };
        if let Some(time) = seen {
            session.advance_operation_time(time);
        }
        let outcome = self.run(command, &mut session).await;
        if let Some(time) = session.operation_time() {
            let mut seen = self.seen.lock();
            for shard in shards {
                let last = seen.entry(shard).or_insert(time);
                *last = time.max(*last);
            }
        }
        outcome
    }

    async fn run(&self, command: Command, session: &mut ClientSession) -> Result<Answer, Fault> {
        match &command {
            Command::Insert(entries) => self.insert(entries, session).await,
            Command::ReadEntry(id) => {
                let entries = self.find_entries(doc! { "_id": id.key() }, session).await?;
                Ok(Answer::Entry(entries.into_iter().next()))
            }
            Command::Find(id) => {
                let last = EntryId::new(id.shard, NUMBER_MAX);
                let filter = doc! { "_id": { "$gt": id.key(), "$lte": last.key() } };
                Ok(Answer::Entries(self.find_entries(filter, session).await?))
            }
            Command::ReadShard(shard) => {
                let filter = doc! { "_id": i32::from(*shard) };
                let rows = self.find_rows(SHARDS, filter, session).await?;
                Ok(Answer::Shard(rows.first().map(decode_shard).transpose()?))
            }
            Command::LastFence { through, held } => {
                let first = EntryId::new(through.shard, 0);
                let mut filter = doc! {
                    "_id": { "$gt": first.key(), "$lte": through.key() }, "fence": true,
                };
                if *held {
                    filter.insert("held", true);
                }
                Ok(Answer::Entry(self.find_last(filter, session).await?))
            }
            Command::Hold { fence, nonce } => {
                let change = rawdoc! {
                    "q": { "_id": fence.key(), "x": *nonce, "fence": true },
                    "u": { "$set": { "held": true } },
                };
                self.matched(JOURNAL, change, session).await
            }
            Command::CreateShard { shard, log, cut } => {
                self.index_fences(session).await?;
                let row = rawdoc! {
                    "_id": i32::from(*shard), "log": *log, "epoch": 0_i64, "beat": 0_i64,
                    "cut": *cut as i64, "members": {},
                };
                self.write(Write::Insert, SHARDS, [row], session).await?;
                Ok(Answer::Done)
            }
            Command::Delete { shard, after, through } => {
                let after = EntryId::new(*shard, *after).key();
                let through = EntryId::new(*shard, *through).key();
                let records = rawdoc! {
                    "q": { "_id": { "$gt": after, "$lte": through }, "fence": { "$exists": false } },
                    "limit": 0,
                };
                self.write(Write::Delete, JOURNAL, [records], session).await?;
                Ok(Answer::Done)
            }
            Command::ReadNodes | Command::ClaimNode { .. } | Command::BeatNode { .. } => {
                self.run_on_nodes(command, session).await
            }
            Command::Take { .. }
            | Command::Beat { .. }
            | Command::RaiseCut { .. }
            | Command::RaiseFloor { .. }
            | Command::Leave { .. }
            | Command::Strike { .. } => self.matched(SHARDS, shard_change(&command), session).await,
        }
    }

    /// Creates the journal with an index of its fences, unless it has one: the last fence is found
    /// without a read of the records after it.
    async fn index_fences(&self, session: &mut ClientSession) -> Result<(), Fault> {
        let index = rawdoc! {
            "name": "fences", "key": { "fence": 1, "_id": 1 },
            "partialFilterExpression": { "fence": true },
        };
        let mut indexes = RawArrayBuf::new();
        indexes.push(index);
        let concern = rawdoc! { "w": "majority" };
        let command =
            rawdoc! { "createIndexes": JOURNAL, "indexes": indexes, "writeConcern": concern };
        let database = self.client.database(&self.database);
        let answer = database.run_raw_command(command).session(session).await;
        answer.map(drop).map_err(|error| fault(&error))
    }

    async fn insert(
        &self,
        entries: &[Entry],
        session: &mut ClientSession,
    ) -> Result<Answer, Fault> {
        let documents = entries.iter().map(encode_entry);
        let answer = self.write(Write::Insert, JOURNAL, documents, session).await?;
        Ok(Answer::Inserted(inserted(&answer, entries.len())?))
    }

    async fn run_on_nodes(
        &self,
        command: Command,
        session: &mut ClientSession,
    ) -> Result<Answer, Fault> {
        match &command {
            Command::ClaimNode { node, run, seen: None } => {
                let row = rawdoc! {
                    "_id": node.as_str(), "addr": "", "beat": 0_i64, "run": *run, "rules": "",
                };
                let answer = self.write(Write::Insert, NODES, [row], session).await?;
                Ok(Answer::Matched(inserted(&answer, 1)? == [Inserted::Done]))
            }
            Command::ClaimNode { node, run, seen: Some((last, beat)) } => {
                let change = rawdoc! {
                    "q": { "_id": node.as_str(), "run": *last, "beat": *beat },
                    "u": { "$set": { "run": *run } },
                };
                self.matched(NODES, change, session).await
            }
            Command::BeatNode { node, run, address, rules } => {
                let change = rawdoc! {
                    "q": { "_id": node.as_str(), "run": *run },
                    "u": {
                        "$inc": { "beat": 1_i64 },
                        "$set": { "addr": &**address, "rules": &**rules },
                    },
                };
                self.matched(NODES, change, session).await
            }
            _ => {
                let rows = self.find_rows(NODES, doc! {}, session).await?;
                Ok(Answer::Nodes(rows.iter().map(decode_node).collect::<Result<_, _>>()?))
            }
        }
    }

    /// Changes a row, and returns whether it matched.
    async fn matched(
        &self,
        collection: &str,
        change: RawDocumentBuf,
        session: &mut ClientSession,
    ) -> Result<Answer, Fault> {
        let answer = self.write(Write::Update, collection, [change], session).await?;
        Ok(Answer::Matched(integer(&answer, "n") == Some(1)))
    }

    /// Returns the entry with the largest key.
    async fn find_last(
        &self,
        filter: Document,
        session: &mut ClientSession,
    ) -> Result<Option<Entry>, Fault> {
        let journal = self.collection::<RawDocumentBuf>(JOURNAL);
        let mut options = one_batch(1);
        options.sort = Some(doc! { "_id": -1 });
        let found = journal.find(filter).with_options(options);
        let mut cursor = found.session(&mut *session).await.map_err(|error| fault(&error))?;
        let has_one = cursor.advance(session).await.map_err(|error| fault(&error))?;
        has_one.then(|| decode_entry(cursor.current())).transpose()
    }

    async fn find_entries(
        &self,
        filter: Document,
        session: &mut ClientSession,
    ) -> Result<Vec<Entry>, Fault> {
        let journal = self.collection::<RawDocumentBuf>(JOURNAL);
        let found = journal.find(filter).with_options(one_batch(FOUND_ENTRIES_MAX));
        let mut cursor = found.session(&mut *session).await.map_err(|error| fault(&error))?;
        let mut entries = Vec::new();
        let mut bytes = 0;
        while cursor.advance(session).await.map_err(|error| fault(&error))? {
            entries.push(decode_entry(cursor.current())?);
            bytes += cursor.current().as_bytes().len();
            // The entries that were read are contiguous, so a part of them is enough.
            if bytes > FOUND_BYTES_MAX {
                break;
            }
        }
        Ok(entries)
    }

    async fn find_rows(
        &self,
        collection: &str,
        filter: Document,
        session: &mut ClientSession,
    ) -> Result<Vec<Document>, Fault> {
        let rows = self.collection::<Document>(collection);
        let found = rows.find(filter).with_options(one_batch(NODES_MAX));
        let mut cursor = found.session(&mut *session).await.map_err(|error| fault(&error))?;
        let mut rows = Vec::new();
        while cursor.advance(session).await.map_err(|error| fault(&error))? {
            rows.push(cursor.deserialize_current().map_err(|error| fault(&error))?);
        }
        Ok(rows)
    }

    fn collection<T: Send + Sync>(&self, name: &str) -> Collection<T> {
        self.client.database(&self.database).collection(name)
    }

    /// Runs a write command without order, and returns its answer. Duplicate keys are in it.
    async fn write(
        &self,
        write: Write,
        collection: &str,
        parts: impl IntoIterator<Item = RawDocumentBuf>,
        session: &mut ClientSession,
    ) -> Result<Document, Fault> {
        let mut array = RawArrayBuf::new();
        parts.into_iter().for_each(|part| array.push(part));
        let wait_ms = (COMMAND_SECONDS_MAX * 1000) as i32;
        let concern = rawdoc! { "w": "majority", "j": true, "wtimeout": wait_ms };
        let mut command = match write {
            Write::Insert => rawdoc! { "insert": collection, "documents": array },
            Write::Update => rawdoc! { "update": collection, "updates": array },
            Write::Delete => rawdoc! { "delete": collection, "deletes": array },
        };
        command.append(cstr!("ordered"), false);
        command.append(cstr!("writeConcern"), concern);
        let database = self.client.database(&self.database);
        let answer = database.run_raw_command(command).session(session).await;
        let answer = answer.map_err(|error| fault(&error))?;
        duplicates(&answer)?;
        Ok(answer)
    }
}

/// A kind of write command.
#[derive(Debug, Clone, Copy)]
enum Write {
    Insert,
    Update,
    Delete,
}

fn one_batch(rows_max: u32) -> FindOptions {
    FindOptions::builder()
        .sort(doc! { "_id": 1 })
        .limit(i64::from(rows_max))
        .batch_size(rows_max)
        .read_concern(ReadConcern::majority())
        .build()
}

fn fault(error: &Error) -> Fault {
    Fault(format!("MongoDB: {}", driver_cause(error)))
}
