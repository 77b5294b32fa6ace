//! Responses of servers by version and role, for tests: the fields that MongoDB's manual documents
//! for each version, with invented numbers.

use mongodb::bson::{Bson, DateTime, Document, Timestamp, doc};

/// The time of the responses, Unix seconds.
pub(crate) const NOW_S: u32 = 1_700_000_000;

fn add_fields(document: &mut Document, more: Document) {
    document.extend(more);
}

/// Returns `serverStatus` of a server, such as `("7.0.5", "primary")`.
pub(crate) fn server_status(version: &str, role: &str) -> Document {
    let major: u32 = version.split('.').next().and_then(|major| major.parse().ok()).unwrap_or(0);
    let mut status = doc! {
        "host": "db1:27017", "version": version,
        "process": if role == "mongos" { "mongos" } else { "mongod" },
        "pid": 4321_i64, "uptime": 7200.0, "uptimeMillis": 7_200_500_i64,
        "uptimeEstimate": 7200_i64,
        "localTime": DateTime::from_millis(i64::from(NOW_S) * 1000),
        "asserts": { "regular": 1, "warning": 2, "msg": 3, "user": 40, "rollovers": 0 },
        "connections": {
            "current": 20, "available": 180, "totalCreated": 500, "active": 5, "threaded": 20,
        },
        "extra_info": {
            "note": "fields vary by platform", "user_time_us": 30_000_000_i64,
            "system_time_us": 10_000_000_i64, "page_faults": 17_i64,
        },
        "network": {
            "bytesIn": 1_000_i64, "bytesOut": 2_000_i64, "numRequests": 30_i64,
            "physicalBytesIn": 900_i64, "physicalBytesOut": 1_900_i64,
        },
        "opcounters": {
            "insert": 11_i64, "query": 12_i64, "update": 13_i64, "delete": 14_i64,
            "getmore": 15_i64, "command": 16_i64,
        },
        "mem": { "bits": 64, "resident": 100, "virtual": 1500, "supported": true },
        "metrics": metrics(major, role),
        "security": {
            "SSLServerSubjectName": "CN=db1", "SSLServerHasCertificateAuthority": true,
            "SSLServerCertificateExpirationDate": DateTime::from_millis(1_800_000_000_000),
        },
        "ok": 1.0,
    };
    if major >= 7 {
        // Since 6.3.
        let connections = status.get_document_mut("connections").unwrap();
        add_fields(connections, doc! { "rejected": 6_i64 });
    }
    if role != "mongos" {
        add_fields(&mut status, mongod(major));
    }
    if ["primary", "secondary", "config"].contains(&role) {
        add_fields(&mut status, member());
    }
    if role == "arbiter" {
        // An arbiter stores no user data.
        status.remove("wiredTiger");
    }
    status
}

fn metrics(major: u32, role: &str) -> Document {
    let mut cursor = doc! {
        "timedOut": 4_i64, "open": { "noTimeout": 0_i64, "pinned": 1_i64, "total": 6_i64 },
    };
    if major >= 5 {
        add_fields(&mut cursor, doc! { "totalOpened": 90_i64, "moreThanOneBatch": 3_i64 });
    }
    if role == "mongos" {
        return doc! { "cursor": cursor, "query": { "updateOneOpStyleBroadcastWithExactIDCount": 0_i64 } };
    }
    let mut metrics = doc! {
        "cursor": cursor,
        "document": {
            "deleted": 21_i64, "inserted": 22_i64, "returned": 23_i64, "updated": 24_i64,
        },
        "operation": { "scanAndOrder": 25_i64, "writeConflicts": 8_i64 },
        "queryExecutor": { "scanned": 1_000_i64, "scannedObjects": 2_000_i64 },
        "ttl": { "deletedDocuments": 26_i64, "passes": 120_i64 },
    };
    add_fields(&mut metrics, doc! { "repl": repl_metrics(major) });
    if major >= 6 {
        let sort =
            doc! { "spillToDisk": 27_i64, "totalBytesSorted": 0_i64, "totalKeysSorted": 0_i64 };
        add_fields(&mut metrics, doc! { "query": { "sort": sort } });
    }
    metrics
}

/// Returns the metrics of replication. 8.0 has two buffers, and renamed those of earlier versions.
fn repl_metrics(major: u32) -> Document {
    let buffer = |count: i64| doc! { "count": count, "sizeBytes": count * 100, "maxSizeBytes": 268_435_456_i64 };
    let timed = |num: i32, millis: i32| doc! { "num": num, "totalMillis": millis };
    let buffers = if major >= 8 {
        doc! { "apply": buffer(3), "write": buffer(4) }
    } else {
        buffer(3)
    };
    doc! {
        "apply": { "batches": timed(70, 3500), "ops": 710_i64, "batchSize": 710_i64 },
        "buffer": buffers,
        "network": {
            "bytes": 7_200_i64, "getmores": timed(73, 7400), "ops": 75_i64,
            "readersCreated": 1_i64,
        },
    }
}

fn tickets(out: i32, total: i32) -> Document {
    doc! { "out": out, "available": total - out, "totalTickets": total }
}

/// Returns the tickets of 8.0, with the queue of each priority.
fn queue(out: i32, total: i32, length: i64) -> Document {
    let mut queue = tickets(out, total);
    add_fields(&mut queue, doc! { "normalPriority": { "queueLength": length } });
    queue
}

/// Adds the fields of `WiredTiger` that moved or were renamed in 8.0.
fn add_moved_fields(wired_tiger: &mut Document, major: u32) {
    let cache = wired_tiger.get_document_mut("cache").unwrap();
    if major >= 8 {
        cache.insert("page evict attempts by application threads", 34_i64);
        cache.insert("application thread time evicting (usecs)", 3_500_000_i64);
        wired_tiger.insert(
            "checkpoint",
            doc! {
                "most recent time (msecs)": 250_i64, "max time (msecs)": 900_i64,
                "total time (msecs)": 60_000_i64, "total succeed number of checkpoints": 120_i64,
            },
        );
    } else {
        cache.insert("pages evicted by application threads", 34_i64);
        let evicting = doc! { "application thread time evicting (usecs)": 3_500_000_i64 };
        wired_tiger.insert("thread-yield", evicting);
        wired_tiger.insert(
            "transaction",
            doc! {
                "transaction checkpoint most recent time (msecs)": 250_i64,
                "transaction checkpoint max time (msecs)": 900_i64,
                "transaction checkpoint total time (msecs)": 60_000_i64,
                "transaction checkpoints": 120_i64,
            },
        );
    }
}

fn mongod(major: u32) -> Document {
    let latency = |latency: i64, ops: i64| doc! { "latency": latency, "ops": ops };
    let mut wired_tiger = doc! {
        "uri": "statistics:",
        "cache": {
            "bytes currently in the cache": 600_000_000_i64,
            "bytes read into cache": 31_i64,
            "bytes written from cache": 32_i64,
            "maximum bytes configured": 1_000_000_000_i64,
            "tracked dirty bytes in the cache": 50_000_000_i64,
        },
    };
    let mut status = Document::new();
    if major >= 8 {
        let execution = doc! { "read": queue(2, 128, 5), "write": queue(1, 128, 6) };
        add_fields(
            &mut status,
            doc! { "queues": { "execution": execution, "ingress": tickets(3, 1_000_000) } },
        );
    } else {
        let concurrent = doc! { "read": tickets(2, 128), "write": tickets(1, 128) };
        add_fields(&mut wired_tiger, doc! { "concurrentTransactions": concurrent });
    }
    add_moved_fields(&mut wired_tiger, major);
    add_fields(
        &mut status,
        doc! {
            "flowControl": {
                "enabled": true, "targetRateLimit": 1_000_000_000,
                "timeAcquiringMicros": 4_500_000_i64, "locksPerKiloOp": 0.0, "sustainerRate": 0,
                "isLagged": false, "isLaggedCount": 2, "isLaggedTimeMicros": 8_000_000_i64,
            },
            "transactions": {
                "retriedCommandsCount": 0_i64, "currentActive": 1_i64, "currentInactive": 2_i64,
                "currentOpen": 3_i64, "totalAborted": 4_i64, "totalCommitted": 90_i64,
                "totalStarted": 97_i64,
            },
            "globalLock": {
                "totalTime": 7_200_000_000_i64,
                "currentQueue": { "total": 3, "readers": 1, "writers": 2 },
                "activeClients": { "total": 0, "readers": 4, "writers": 5 },
            },
            "opLatencies": {
                "reads": latency(500_000, 100), "writes": latency(800_000, 200),
                "commands": latency(90_000, 300), "transactions": latency(0, 0),
            },
            "storageEngine": { "name": "wiredTiger", "persistent": true },
            "wiredTiger": wired_tiger,
        },
    );
    status
}

fn member() -> Document {
    let reason = |called: i64| doc! { "called": called, "successful": 1_i64 };
    doc! {
        "opcountersRepl": {
            "insert": 41_i64, "query": 0_i64, "update": 42_i64, "delete": 43_i64,
            "getmore": 0_i64, "command": 44_i64,
        },
        "electionMetrics": {
            "stepUpCmd": reason(2), "priorityTakeover": reason(0), "catchUpTakeover": reason(0),
            "electionTimeout": reason(3), "freezeTimeout": reason(0), "numCatchUps": 0_i64,
        },
        "repl": { "setName": "rs0", "me": "db1:27017" },
        "shardingStatistics": { "countStaleConfigErrors": 0_i64, "rangeDeleterTasks": 2_i64 },
    }
}

/// Returns `serverStatus` of `MMAPv1`, as in 2.6.
pub(crate) fn server_status_of_mmap() -> Document {
    doc! {
        "host": "db1:27017", "version": "2.6.12", "process": "mongod", "pid": 4321_i64,
        "uptime": 7200.0, "uptimeMillis": 7_200_500_i64,
        "asserts": { "regular": 1, "warning": 2, "msg": 3, "user": 40, "rollovers": 0 },
        "backgroundFlushing": { "flushes": 100, "total_ms": 500, "average_ms": 5.0, "last_ms": 4 },
        "cursors": { "totalOpen": 6, "clientCursors_size": 7, "timedOut": 4 },
        "dur": {
            "commits": 30, "journaledMB": 0.5, "writeToDataFilesMB": 0.25, "compression": 1.0,
            "commitsInWriteLock": 2, "earlyCommits": 0,
        },
        "indexCounters": { "accesses": 10, "hits": 8, "misses": 2, "resets": 0, "missRatio": 0.2 },
        "mem": { "bits": 64, "resident": 100, "virtual": 1500, "supported": true, "mapped": 400 },
        "recordStats": { "accessesNotInMemory": 9, "pageFaultExceptionsThrown": 3 },
        "ok": 1.0,
    }
}

/// Returns `hello` of a role.
pub(crate) fn hello(role: &str) -> Document {
    let is_writable = ["primary", "config", "standalone", "mongos"].contains(&role);
    let mut hello = doc! {
        "helloOk": true, "isWritablePrimary": is_writable,
        "maxBsonObjectSize": 16_777_216, "maxMessageSizeBytes": 48_000_000,
        "maxWriteBatchSize": 100_000, "localTime": DateTime::from_millis(i64::from(NOW_S) * 1000),
        "logicalSessionTimeoutMinutes": 30, "connectionId": 5, "minWireVersion": 0,
        "maxWireVersion": 25, "readOnly": false, "ok": 1.0,
    };
    match role {
        "standalone" => {}
        "mongos" => add_fields(&mut hello, doc! { "msg": "isdbgrid" }),
        _ => add_fields(
            &mut hello,
            doc! {
                "setName": "rs0", "setVersion": 1, "hosts": ["db1:27017", "db2:27017", "db3:27017"],
                "me": "db1:27017", "secondary": role == "secondary",
            },
        ),
    }
    if role == "arbiter" {
        add_fields(&mut hello, doc! { "arbiterOnly": true });
    }
    if role == "config" {
        add_fields(&mut hello, doc! { "configsvr": 2 });
    }
    hello
}

/// States of members of a replica set.
const PRIMARY: i32 = 1;
const ARBITER: i32 = 7;
const DOWN: i32 = 8;

/// The time between the wall-clock time of a lagging member's last operation and its `optimeDate`.
const WALL_CLOCK_LEAD_MS: i64 = 250;

fn member_of_set(name: &str, state: i32, behind_s: u32, is_self: bool) -> Document {
    let time = NOW_S - behind_s;
    let millis = i64::from(time) * 1000 - i64::from(behind_s > 0) * WALL_CLOCK_LEAD_MS;
    let mut member = doc! {
        "name": name, "health": f64::from(u8::from(state != DOWN)), "state": state,
        "optime": { "ts": Timestamp { time, increment: 1 }, "t": 3_i64 },
        "optimeDate": DateTime::from_millis(i64::from(time) * 1000),
        "lastAppliedWallTime": DateTime::from_millis(millis),
    };
    if state == ARBITER || state == DOWN {
        // Arbiters have no optime; for members that are down, the test data leaves it out.
        for field in ["optime", "optimeDate", "lastAppliedWallTime"] {
            member.remove(field);
        }
    }
    if is_self {
        member.insert("self", true);
    } else {
        let heartbeat = DateTime::from_millis((i64::from(NOW_S) - 2) * 1000);
        add_fields(&mut member, doc! { "pingMs": 9_i64, "lastHeartbeat": heartbeat });
    }
    if state == PRIMARY {
        let elected = Timestamp { time: NOW_S - 600, increment: 1 };
        add_fields(
            &mut member,
            doc! {
                "electionTime": elected,
                "electionDate": DateTime::from_millis((i64::from(NOW_S) - 600) * 1000),
            },
        );
    }
    member
}

/// Returns `replSetGetStatus` as the member `queried_member` answers it; each member has a name, a
/// state and a lag in seconds.
pub(crate) fn set_status(queried_member: &str, members: &[(&str, i32, u32)]) -> Document {
    let state =
        members.iter().find(|(name, ..)| *name == queried_member).map_or(0, |(_, state, _)| *state);
    let member = |(name, state, behind): &(&str, i32, u32)| {
        member_of_set(name, *state, *behind, *name == queried_member)
    };
    let members: Vec<Bson> = members.iter().map(member).map(Bson::Document).collect();
    doc! {
        "set": "rs0", "date": DateTime::from_millis(i64::from(NOW_S) * 1000), "myState": state,
        "term": 3_i64, "heartbeatIntervalMillis": 2000_i64, "members": members, "ok": 1.0,
    }
}

/// Returns the response to an aggregation, by the first stage of its pipeline.
pub(crate) fn aggregation(version: &str, command: &Document) -> Document {
    let pipeline = command.get_array("pipeline").unwrap();
    let first_stage = pipeline[0].as_document().unwrap();
    let batch = |documents: Vec<Document>| {
        doc! { "cursor": { "firstBatch": documents, "id": 0_i64, "ns": "x.y" }, "ok": 1.0 }
    };
    match first_stage.keys().next().unwrap().as_str() {
        "$currentOp" => batch(vec![
            doc! { "_id": "query", "n": 3, "oldest": 2_500_000_i64, "lock": 1, "flow": 0 },
            doc! { "_id": "insert", "n": 1, "oldest": 1_000_i64, "lock": 0, "flow": 1 },
        ]),
        "$collStats" if command.get_str("aggregate").is_ok_and(|name| name == "oplog.rs") => {
            first_batch(doc! { "storageStats": { "size": 1_073_741_824_i64 } })
        }
        "$collStats" => first_batch(collection_stats(version)),
        "$indexStats" => {
            let since = DateTime::from_millis(i64::from(NOW_S - 7200) * 1000);
            let accesses = doc! { "ops": 12_i64, "since": since };
            batch(vec![doc! { "name": "_id_", "accesses": accesses }])
        }
        "$group" => batch(vec![
            doc! { "_id": "shard01", "chunks": 4, "jumbo": 1 },
            doc! { "_id": "shard02", "chunks": 5, "jumbo": 0 },
        ]),
        stage => panic!("unexpected stage {stage}"),
    }
}

fn collection_stats(version: &str) -> Document {
    let latency = |latency: i64, ops: i64| doc! { "latency": latency, "ops": ops };
    let mut storage = doc! {
        "size": 5_000_000_000_i64, "count": 4_000, "avgObjSize": 1_250_000, "numOrphanDocs": 7_i64,
        "storageSize": 2_000_000_000_i64, "freeStorageSize": 4096, "capped": false, "nindexes": 2,
        "totalIndexSize": 20_480, "indexSizes": { "_id_": 12_288, "by.day": 8_192 },
    };
    if version.starts_with(['4', '5']) {
        storage.remove("numOrphanDocs");
    }
    doc! {
        "ns": "shop.orders", "host": "db1:27017", "storageStats": storage,
        "latencyStats": {
            "reads": latency(500_000, 100), "writes": latency(800_000, 200),
            "commands": latency(90_000, 300), "transactions": latency(0, 0),
        },
    }
}

/// Returns the response of a query with one document.
pub(crate) fn first_batch(first: Document) -> Document {
    let ns = "local.oplog.rs";
    doc! { "cursor": { "firstBatch": [first], "id": 0_i64, "ns": ns }, "ok": 1.0 }
}

/// Returns a server's status after a few seconds, with increased fields.
pub(crate) fn later(status: &Document, seconds: i64, changes: &[(&str, &str, i64)]) -> Document {
    let mut status = status.clone();
    let uptime = status.get_i64("uptimeMillis").unwrap() + seconds * 1000;
    status.insert("uptimeMillis", uptime);
    for (path, field, by) in changes {
        let mut inner = &mut status;
        for name in path.split('.') {
            inner = inner.get_document_mut(name).unwrap();
        }
        let before = inner.get_i64(field).unwrap();
        inner.insert(*field, before + by);
    }
    status
}

/// Returns true for a metric that the agent sends even before a server answers, without its set.
pub(crate) fn is_of_agent(metric: &str) -> bool {
    metric == "mongodb_up" || metric.starts_with("mongodb_collect_")
}
