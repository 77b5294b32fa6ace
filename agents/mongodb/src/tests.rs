//! Rounds against scripted servers of each role.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::TcpListener,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
};

use mongodb::bson::{Bson, Document, Timestamp, doc};

use super::*;
use crate::{
    responder::{Responder, error_document},
    test_responses::{NOW_S, first_batch, hello, is_of_agent, server_status, set_status},
};

mod history;
mod profiles;

const NOW_MS: i64 = NOW_S as i64 * 1000;

/// Returns the response of a server with this role.
fn response(role: &str, version: &str, command: &Document) -> Document {
    let members = [("db1:27017", 1, 0), ("db2:27017", 2, 7), ("db3:27017", 7, 0)];
    let member = match role {
        "secondary" => "db2:27017",
        "arbiter" => "db3:27017",
        _ => "db1:27017",
    };
    let end = |time| first_batch(doc! { "ts": Timestamp { time, increment: 1 } });
    match command.keys().next().map_or("", String::as_str) {
        "hello" | "isMaster" | "ismaster" => hello(role),
        _ if role == "arbiter" => error_document(13, "Unauthorized"),
        "serverStatus" => server_status(version, role),
        "replSetGetStatus" => set_status(member, &members),
        "find" if command.get_str("find").is_ok_and(|name| name == "system.profile") => {
            profile(command)
        }
        "find" => {
            let is_first = command.get_document("sort").unwrap().get_i32("$natural").unwrap() == 1;
            end(if is_first { NOW_S - 3600 } else { NOW_S })
        }
        "aggregate" => test_responses::aggregation(version, command),
        "listCollections" => {
            let orders = doc! { "name": "orders", "type": "collection" };
            let is_shop = command.get_str("$db").is_ok_and(|name| name == "shop");
            let names = if is_shop { vec![orders] } else { vec![] };
            doc! { "cursor": { "firstBatch": names, "id": 0_i64, "ns": "shop" }, "ok": 1.0 }
        }
        "balancerStatus" => doc! {
            "mode": "full", "inBalancerRound": false, "numBalancerRounds": 1143_i64, "ok": 1.0,
        },
        "hostInfo" => doc! { "system": { "hostname": "db1", "numCores": 2 }, "ok": 1.0 },
        "getCmdLineOpts" => doc! { "parsed": { "storage": { "dbPath": "/srv/m" } }, "ok": 1.0 },
        "listDatabases" => {
            let name = |name: &str| Bson::Document(doc! { "name": name });
            doc! { "databases": [name("admin"), name("shop")], "ok": 1.0 }
        }
        "dbStats" => doc! {
            "db": command.get_str("$db").unwrap(), "collections": 2, "views": 0, "objects": 10_i64,
            "avgObjSize": 50.0, "dataSize": 500.0, "storageSize": 4096.0, "indexes": 3,
            "indexSize": 8192.0, "totalSize": 12288.0, "scaleFactor": 1.0, "ok": 1.0,
        },
        _ => error_document(59, "CommandNotFound"),
    }
}

/// Returns the documents of a profiler since the time of the query, or the last one before it.
fn profile(command: &Document) -> Document {
    let since = command.get_document("filter").and_then(|f| f.get_document("ts"));
    let since_ms =
        since.and_then(|ts| ts.get_datetime("$gte")).map_or(0, |ts| ts.timestamp_millis());
    let entries = [NOW_MS - 5_000, NOW_MS + 5_000].map(|ts| {
        doc! {
            "op": "query", "ns": "shop.orders", "ts": mongodb::bson::DateTime::from_millis(ts),
            "millis": 1_500, "docsExamined": 40, "keysExamined": 40, "nreturned": 3,
            "command": { "find": "orders", "filter": { "customer": "ann" } },
        }
    });
    let since_then = entries
        .into_iter()
        .filter(|entry| entry.get_datetime("ts").is_ok_and(|ts| ts.timestamp_millis() >= since_ms));
    let limit = usize::try_from(command.get_i32("limit").unwrap()).unwrap();
    let batch: Vec<Document> = since_then.take(limit).collect();
    doc! { "cursor": { "firstBatch": batch, "id": 0_i64, "ns": "shop.system.profile" }, "ok": 1.0 }
}

fn server(role: &'static str, version: &'static str) -> Responder {
    Responder::start(move |_, command| Some(response(role, version, command)))
}

fn agent_for(addresses: &[&str], timeout: Duration) -> MongoDb {
    let target = |address: &&str| TargetSettings::new(format!("mongodb://{address}"));
    let targets = addresses.iter().map(target).collect();
    let settings = Settings { targets, timeout, ..Settings::default() };
    MongoDb::with_deadline(&settings, EACH_ROUND, LONG_TIMEOUT, None).unwrap()
}

const EACH_ROUND: Duration = Duration::from_millis(1);

const LONG_TIMEOUT: Duration = Duration::from_secs(30);
const SHORT_TIMEOUT: Duration = Duration::from_millis(400);

fn sample_round(agent: &mut MongoDb, now_ms: i64) -> Readings {
    let mut readings = Readings::default();
    agent.sample(now_ms, &mut readings).unwrap();
    readings
}

fn value(readings: &Readings, host: &str, metric: &str) -> Option<f64> {
    let is_host = |tags: &[(_, String)]| tags.contains(&("host".into(), host.to_owned()));
    readings.as_slice().iter().find(|r| r.metric == metric && is_host(&r.tags)).map(|r| r.value)
}

#[test]
fn each_role_receives_only_queries_that_it_can_answer() {
    let member_queries = ["hello", "serverStatus", "replSetGetStatus", "find", "find", "aggregate"];
    let database_queries = [
        "hostInfo",
        "getCmdLineOpts",
        "listDatabases",
        "dbStats",
        "dbStats",
        // Running operations, collections of two databases, one collection with its indexes, and
        // the profiler of one database.
        "aggregate",
        "listDatabases",
        "listCollections",
        "listCollections",
        "aggregate",
        "aggregate",
        "find",
    ];
    let data_queries = member_queries.iter().chain(&database_queries).copied().collect::<Vec<_>>();
    let standalone = member_queries[..2].iter().chain(&database_queries).copied().collect();
    for (role, expected) in [
        ("standalone", standalone),
        ("primary", data_queries.clone()),
        ("config", data_queries.clone()),
        ("secondary", data_queries),
        ("arbiter", vec!["hello", "serverStatus", "replSetGetStatus"]),
        (
            "mongos",
            vec!["hello", "serverStatus", "hostInfo", "aggregate", "balancerStatus", "aggregate"],
        ),
    ] {
        let server = server(role, "7.0.5");
        let mut agent = agent_for(&[&server.address], LONG_TIMEOUT);
        let readings = sample_round(&mut agent, NOW_MS);
        assert_eq!(server.commands(), expected, "{role}");
        assert_eq!(readings.problems().len(), 0, "{role}: {:?}", readings.problems());
        assert_eq!(value(&readings, &server.address, "mongodb_up"), Some(1.0), "{role}");
        // The oplog is due every minute, databases and collections every twenty minutes.
        sample_round(&mut agent, NOW_MS + 10_000);
        let again = server.commands();
        assert!(again.len() <= 5 && again[..2] == expected[..2], "{role}: {again:?}");
        assert!(
            server.connections.load(Ordering::SeqCst) <= 2,
            "one for commands, one for health checks"
        );
    }
}

#[test]
fn a_secondary_reports_its_lag_and_the_headroom_of_the_primarys_oplog() {
    let (primary, secondary) = (server("primary", "8.0.4"), server("secondary", "8.0.4"));
    let mut agent = agent_for(&[&primary.address, &secondary.address], LONG_TIMEOUT);
    let readings = sample_round(&mut agent, NOW_MS);
    let of_secondary = |metric| value(&readings, &secondary.address, metric);
    assert_eq!(of_secondary("mongodb_oplog_slave_lag_master_time"), Some(7.0));
    assert_eq!(of_secondary("mongodb_oplog_master_lag_time_diff"), Some(3593.0));
    let of_primary = |metric| value(&readings, &primary.address, metric);
    assert_eq!(of_primary("mongodb_oplog_master_time"), Some(3600.0));
    assert_eq!(of_primary("mongodb_oplog_rate_gb_per_hour"), Some(1.0));
    assert_eq!(of_primary("mongodb_oplog_master_lag_time_diff"), None);
    assert_eq!(of_primary("mongodb_db_data_size_total"), Some(1000.0));
    assert_eq!(of_primary("mongodb_collect_commands"), Some(18.0));
    let databases: BTreeSet<_> = readings
        .as_slice()
        .iter()
        .filter_map(|r| r.tags.iter().find(|(name, _)| name == "database"))
        .map(|(_, database)| database.as_str())
        .collect();
    assert_eq!(databases, ["admin", "shop"].into());
}

#[test]
fn a_server_that_does_not_answer_delays_no_other_server() {
    let stuck = Responder::start(|_, command| {
        // The server accepts connections, and hangs at the first real command.
        let name = command.keys().next().map_or("", String::as_str);
        (name != "serverStatus").then(|| response("standalone", "7.0.5", command))
    });
    let healthy = server("standalone", "7.0.5");
    let mut agent = agent_for(&[&stuck.address, &healthy.address], SHORT_TIMEOUT);
    for round_number in 0..2 {
        let readings = sample_round(&mut agent, NOW_MS + round_number * 10_000);
        assert_eq!(value(&readings, &stuck.address, "mongodb_up"), Some(0.0));
        assert_eq!(value(&readings, &healthy.address, "mongodb_up"), Some(1.0));
        assert!(value(&readings, &healthy.address, "mongodb_opcounter_query").is_some());
        let problem = &readings.problems()[&format!("mongodb {}", stuck.address)];
        assert!(problem.contains("no answer within"), "{problem}");
    }
}

/// Regression: all other servers waited for the timeout of one hanging server, and had 9 samples in
/// 40 rounds.
#[test]
fn a_long_hang_of_a_server_does_not_stop_the_samples_of_others() {
    let stuck = Responder::start(|_, _| None);
    let healthy = server("standalone", "7.0.5");
    let target = |server: &Responder| TargetSettings::new(format!("mongodb://{}", server.address));
    let targets = vec![target(&stuck), target(&healthy)];
    let settings = Settings { targets, timeout: Duration::from_secs(60), ..Settings::default() };
    let mut agent = MongoDb::new(&settings, EACH_ROUND).unwrap();
    let watch = granary_agent_kit::Stopwatch::start();
    let (mut sampled_times, mut number) = (BTreeSet::new(), 0);
    while sampled_times.len() < 10 {
        number += 1;
        let time = NOW_MS + number * 1000;
        let readings = sample_round(&mut agent, time);
        if value(&readings, &healthy.address, "mongodb_up").is_some() {
            sampled_times.insert(time);
        }
        let late =
            readings.known().iter().filter(|reading| reading.series.metric() == "mongodb_up");
        sampled_times.extend(late.map(|reading| reading.time_ms));
        assert!(watch.elapsed() < Duration::from_secs(25), "{sampled_times:?} of {number} rounds");
        if number > 1 {
            assert!(readings.problems().contains_key(&format!("mongodb {}", stuck.address)));
        }
    }
}

/// Regression: the totals of 5,000 databases covered 1,000, and the only warning vanished after
/// five seconds.
#[test]
fn totals_include_every_database_and_each_round_repeats_them_with_their_time() {
    let server = Responder::start(|_, command| {
        let mut response = response("standalone", "7.0.5", command);
        if command.contains_key("listDatabases") {
            let name = |index| Bson::Document(doc! { "name": format!("db{index:04}") });
            response = doc! { "databases": (0..1_200).map(name).collect::<Vec<_>>(), "ok": 1.0 };
        }
        Some(response)
    });
    let mut agent = agent_for(&[&server.address], LONG_TIMEOUT);
    let value_of = |readings: &Readings, metric: &str| value(readings, &server.address, metric);
    let mut time = NOW_MS;
    let mut readings = sample_round(&mut agent, time);
    while value_of(&readings, "mongodb_db_data_size_total").is_none() {
        time += 10_000;
        readings = sample_round(&mut agent, time);
        assert!(time < NOW_MS + 1_000_000);
    }
    let measured = time as f64 / 1000.0;
    for time in [time + 10_000, time + 600_000] {
        let readings = sample_round(&mut agent, time);
        assert_eq!(value_of(&readings, "mongodb_db_data_size_total"), Some(600_000.0));
        assert_eq!(value_of(&readings, "mongodb_databases_measured"), Some(measured));
        let of_each =
            readings.as_slice().iter().filter(|r| r.metric == "mongodb_database_data_size");
        assert_eq!(of_each.count(), 1_000);
        let problem = &readings.problems()[&format!("mongodb {} databases", server.address)];
        assert!(problem.starts_with("200 databases"), "{problem}");
    }
}

#[test]
fn readings_before_the_deadline_are_kept() {
    let slow = Responder::start(|_, command| {
        let name = command.keys().next().map_or("", String::as_str);
        (name != "dbStats").then(|| response("standalone", "7.0.5", command))
    });
    let readings = sample_round(&mut agent_for(&[&slow.address], SHORT_TIMEOUT), NOW_MS);
    assert_eq!(value(&readings, &slow.address, "mongodb_up"), Some(1.0));
    assert_eq!(value(&readings, &slow.address, "mongodb_uptime"), Some(7200.0));
    assert_eq!(readings.problems().len(), 1);
}

#[test]
fn a_dead_server_is_queried_less_often_and_recovers_by_itself() {
    let alive = Arc::new(AtomicBool::new(false));
    let is_alive = Arc::clone(&alive);
    let server = Responder::start(move |_, command| {
        is_alive.load(Ordering::SeqCst).then(|| response("standalone", "7.0.5", command))
    });
    let mut agent = agent_for(&[&server.address], SHORT_TIMEOUT);
    let up = |agent: &mut MongoDb, seconds: i64| {
        value(&sample_round(agent, NOW_MS + seconds * 1000), &server.address, "mongodb_up").unwrap()
    };
    assert_eq!((up(&mut agent, 0), up(&mut agent, 60)), (0.0, 0.0));
    let opened = server.connections.load(Ordering::SeqCst);
    assert_eq!((up(&mut agent, 70), up(&mut agent, 350)), (0.0, 0.0));
    assert_eq!(server.connections.load(Ordering::SeqCst), opened, "no connection was opened");
    alive.store(true, Ordering::SeqCst);
    assert_eq!((up(&mut agent, 355), up(&mut agent, 360)), (0.0, 1.0));
}

#[test]
fn missing_privileges_only_affect_the_commands_that_need_them() {
    let server = Responder::start(|_, command| {
        let name = command.keys().next().map_or("", String::as_str);
        let is_forbidden =
            ["find", "aggregate", "listDatabases", "replSetGetStatus"].contains(&name);
        Some(if is_forbidden {
            error_document(13, "Unauthorized")
        } else {
            response("primary", "6.0.15", command)
        })
    });
    let mut agent = agent_for(&[&server.address], LONG_TIMEOUT);
    let readings = sample_round(&mut agent, NOW_MS);
    assert_eq!(value(&readings, &server.address, "mongodb_opcounter_query"), Some(12.0));
    let objects: Vec<_> =
        readings.problems().keys().map(|p| p.rsplit(' ').next().unwrap()).collect();
    let expected = ["$currentOp", "aggregate", "find", "listDatabases", "replSetGetStatus"];
    assert_eq!(objects, expected);
    assert_eq!(value(&readings, &server.address, "mongodb_collect_failures"), Some(7.0));
    // A refused query for running operations is only repeated after an hour, and stays reported.
    server.commands();
    let readings = sample_round(&mut agent, NOW_MS + 20_000);
    let aggregates = server.commands().iter().filter(|name| *name == "aggregate").count();
    assert_eq!(aggregates, 0);
    let object = format!("mongodb {} $currentOp", server.address);
    assert!(readings.problems().contains_key(&object), "{:?}", readings.problems());
}

#[test]
fn two_targets_with_the_same_name_are_rejected() {
    let target = || TargetSettings::new("mongodb://db1,db2");
    let settings = Settings { targets: vec![target(), target()], ..Settings::default() };
    let message = MongoDb::new(&settings, EACH_ROUND).unwrap_err().to_string();
    assert_eq!(message, "target db1:27017: two targets have this name");
}

#[test]
fn a_server_that_refuses_connections_is_down() {
    let closed_address =
        TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let readings = sample_round(&mut agent_for(&[&closed_address], SHORT_TIMEOUT), NOW_MS);
    assert_eq!(value(&readings, &closed_address, "mongodb_up"), Some(0.0));
}

/// Returns the rows of METRICS.md: kind, unit and tags by name.
fn documented_metrics() -> BTreeMap<String, [String; 3]> {
    let rows = include_str!("../METRICS.md").lines().filter(|line| line.starts_with("| `mongodb"));
    rows.map(|line| {
        let cells: Vec<_> = line.split('|').map(|cell| cell.trim().replace('`', "")).collect();
        (cells[1].clone(), [cells[2].clone(), cells[3].clone(), cells[4].clone()])
    })
    .collect()
}

/// The metrics of MMS and Ops Manager by name: a prefix and its suffixes.
const MMS_METRICS: [(&str, &[&str]); 29] = [
    ("ASSERT_", &["REGULAR", "WARNING", "MSG", "USER"]),
    ("OPCOUNTER_", &["CMD", "QUERY", "INSERT", "UPDATE", "DELETE", "GETMORE", "TTL_DELETED"]),
    ("OPCOUNTER_REPL_", &["CMD", "INSERT", "UPDATE", "DELETE"]),
    ("DOCUMENT_METRICS_", &["RETURNED", "INSERTED", "UPDATED", "DELETED"]),
    ("QUERY_EXECUTOR_SCANNED", &["", "_OBJECTS"]),
    ("QUERY_TARGETING_SCANNED_", &["PER_RETURNED", "OBJECTS_PER_RETURNED"]),
    ("OPERATIONS_SCAN_AND_ORDER", &[""]),
    ("QUERY_SPILL_TO_DISK_DURING_SORT", &[""]),
    ("OP_EXECUTION_TIME_", &["READS", "WRITES", "COMMANDS"]),
    ("CONNECTIONS", &["", "_PERCENT"]),
    ("CURSORS_", &["TOTAL_OPEN", "TOTAL_TIMED_OUT", "CLIENT_SIZE"]),
    ("GLOBAL_LOCK_CURRENT_QUEUE_", &["TOTAL", "READERS", "WRITERS"]),
    ("MEMORY_", &["RESIDENT", "VIRTUAL", "MAPPED"]),
    ("COMPUTED_MEMORY", &[""]),
    ("NETWORK_", &["BYTES_IN", "BYTES_OUT", "NUM_REQUESTS"]),
    ("CACHE_", &["BYTES_READ_INTO", "BYTES_WRITTEN_FROM", "DIRTY_BYTES", "USED_BYTES"]),
    ("CACHE_", &["FILL_RATIO", "DIRTY_FILL_RATIO"]),
    ("TICKETS_AVAILABLE_", &["READS", "WRITE"]),
    ("OPLOG_", &["SLAVE_LAG_MASTER_TIME", "REPLICATION_LAG", "MASTER_TIME"]),
    ("OPLOG_", &["MASTER_LAG_TIME_DIFF", "RATE_GB_PER_HOUR"]),
    ("EXTRA_INFO_PAGE_FAULTS", &[""]),
    ("GLOBAL_", &["ACCESSES_NOT_IN_MEMORY", "PAGE_FAULT_EXCEPTIONS_THROWN"]),
    ("JOURNALING_", &["COMMITS_IN_WRITE_LOCK", "MB", "WRITE_DATA_FILES_MB"]),
    ("BACKGROUND_FLUSH_AVG", &[""]),
    ("INDEX_COUNTERS_BTREE_", &["ACCESSES", "HITS", "MISSES", "MISS_RATIO"]),
    ("DB_", &["STORAGE_TOTAL", "DATA_SIZE_TOTAL", "INDEX_SIZE_TOTAL"]),
    (
        "DATABASE_",
        &[
            "DATA_SIZE",
            "STORAGE_SIZE",
            "INDEX_SIZE",
            "FILE_SIZE",
            "AVERAGE_OBJECT_SIZE",
            "OBJECT_COUNT",
            "COLLECTION_COUNT",
            "INDEX_COUNT",
            "EXTENT_COUNT",
            "VIEW_COUNT",
        ],
    ),
    ("LOGICAL_", &["SIZE"]),
    ("RESTARTS_IN_", &["LAST_HOUR"]),
];

/// Adds the fields of `dbStats` that only `MMAPv1` returns.
fn with_mmap_fields(mut response: Document) -> Document {
    if response.contains_key("avgObjSize") {
        response.extend(doc! { "fileSize": 67_108_864.0, "numExtents": 4 });
    }
    response
}

#[test]
fn every_documented_metric_and_every_metric_of_mms_is_emitted() {
    let documented = documented_metrics();
    let status_queries = AtomicI64::new(0);
    let old = Responder::start(move |_, command| {
        let mut response = with_mmap_fields(response("primary", "4.4.29", command));
        if command.contains_key("serverStatus") {
            let rounds = status_queries.fetch_add(1, Ordering::SeqCst);
            let latency = |kind| (kind, "latency", 30_000 * rounds);
            let ops = |kind| (kind, "ops", 20 * rounds);
            let kinds = ["opLatencies.reads", "opLatencies.writes", "opLatencies.commands"];
            let mut changes = [kinds.map(latency), kinds.map(ops)].concat();
            changes.push(("metrics.queryExecutor", "scanned", 500 * rounds));
            changes.push(("metrics.queryExecutor", "scannedObjects", 50 * rounds));
            response = test_responses::later(&response, 60 * rounds, &changes);
        }
        Some(response)
    });
    let router = server("mongos", "8.0.4");
    let servers = [server("primary", "8.0.4"), server("secondary", "7.0.5"), router, old];
    let addresses = servers.each_ref().map(|server| &*server.address);
    let mut agent = agent_for(&addresses, LONG_TIMEOUT);
    let mut mmap_readings = Readings::new(vec![("host".to_owned(), "db1".to_owned())]);
    let mut server_state = status::ServerState::default();
    status::read(
        &test_responses::server_status_of_mmap(),
        NOW_MS,
        None,
        &mut server_state,
        &mut mmap_readings,
    );
    let mut emitted_metrics = BTreeSet::new();
    for readings in
        [sample_round(&mut agent, NOW_MS), sample_round(&mut agent, NOW_MS + 60_000), mmap_readings]
    {
        for reading in readings.as_slice() {
            let is_common = |key: &&str| ["host", "set", "shard", "role"].contains(key);
            let keys = reading.tags.iter().map(|(key, _)| key.as_ref());
            let has_own_shard = reading.metric.starts_with("mongodb_chunks");
            let keys: Vec<&str> =
                keys.filter(|key| !is_common(key) || has_own_shard && *key == "shard").collect();
            let keys = if keys.is_empty() { vec!["-"] } else { keys };
            let unit = if reading.unit.is_empty() { "-" } else { &reading.unit };
            let emitted = [reading.kind.to_string(), unit.to_owned(), keys.join(", ")];
            assert_eq!(
                documented.get(reading.metric.as_ref()),
                Some(&emitted),
                "{}",
                reading.metric
            );
            emitted_metrics.insert(reading.metric.to_string());
        }
    }
    let rows: BTreeSet<_> = documented.into_keys().collect();
    assert_eq!(
        rows.difference(&emitted_metrics).collect::<Vec<_>>(),
        Vec::<&String>::new(),
        "never emitted"
    );
    let prefixes_and_suffixes = MMS_METRICS
        .iter()
        .flat_map(|(prefix, suffixes)| suffixes.iter().map(move |suffix| (prefix, suffix)));
    let mut shown = 0;
    for (prefix, suffix) in prefixes_and_suffixes {
        let metric = format!("mongodb_{}{}", prefix.to_lowercase(), suffix.to_lowercase());
        assert!(emitted_metrics.contains(&metric), "{metric}");
        shown += 1;
    }
    assert_eq!(shown, 82, "metrics of MMS");
}
