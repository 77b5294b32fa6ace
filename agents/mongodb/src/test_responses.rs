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
        "operation": { "scanAndOrder": 25_i64, "writeConflicts": 0_i64 },
        "queryExecutor": { "scanned": 1_000_i64, "scannedObjects": 2_000_i64 },
        "ttl": { "deletedDocuments": 26_i64, "passes": 120_i64 },
    };
    if major >= 6 {
        let sort =
            doc! { "spillToDisk": 27_i64, "totalBytesSorted": 0_i64, "totalKeysSorted": 0_i64 };
        add_fields(&mut metrics, doc! { "query": { "sort": sort } });
    }
    metrics
}

fn tickets(out: i32, total: i32) -> Document {
    doc! { "out": out, "available": total - out, "totalTickets": total }
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
        let execution = doc! { "read": tickets(2, 128), "write": tickets(1, 128) };
        add_fields(
            &mut status,
            doc! { "queues": { "execution": execution, "ingress": tickets(3, 1_000_000) } },
        );
    } else {
        let concurrent = doc! { "read": tickets(2, 128), "write": tickets(1, 128) };
        add_fields(&mut wired_tiger, doc! { "concurrentTransactions": concurrent });
    }
    add_fields(
        &mut status,
        doc! {
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
