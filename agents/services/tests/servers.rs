//! Rounds against real servers from Debian's packages.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot continue has failed")]

use std::{
    collections::BTreeMap,
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use granary_agent_kit::{Readings, SideBySide, Source};
use granary_agent_services::{FoundService, Kind, Program, Service, discover, source};

const DEADLINE: Duration = Duration::from_secs(60);

/// A server process that ends with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _outcome = self.0.kill();
        let _outcome = self.0.wait();
    }
}

fn start_server(program: impl AsRef<Path>, arguments: &[&str]) -> Server {
    let mut command = Command::new(program.as_ref());
    let child = command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    Server(child.unwrap_or_else(|cause| panic!("{}: {cause}", program.as_ref().display())))
}

fn run(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
}

fn source_of(kind: Kind, address: &str, settings: &str) -> SideBySide {
    let service: Service = toml::from_str(&format!("address = '{address}'\n{settings}")).unwrap();
    source(kind, &[service], "web1", Duration::from_secs(1)).unwrap()
}

/// Returns the values of a round by metric and tags, and its problems.
fn sample_round(source: &mut SideBySide, now_ms: i64) -> (BTreeMap<String, f64>, String) {
    let mut readings = Readings::default();
    source.sample_alone(now_ms, &mut readings).unwrap();
    let entry = |reading: &granary_agent_kit::Reading| {
        assert!(reading.tags.iter().any(|(name, value)| name == "host" && value == "web1"));
        let is_additional = |name: &str| name != "host" && name != "instance";
        let tags = reading.tags.iter().filter(|(name, _)| is_additional(name));
        let tags: Vec<_> = tags.map(|(_, value)| value.as_str()).collect();
        let metric = reading.metric.to_string();
        (
            if tags.is_empty() { metric } else { format!("{metric} {}", tags.join(" ")) },
            reading.value,
        )
    };
    let problems = format!("{:?}", readings.problems());
    (readings.as_slice().iter().map(entry).collect(), problems)
}

/// Repeats rounds until the server is up, and returns the values of the last round.
#[expect(clippy::disallowed_methods, reason = "a deadline of a test")]
fn wait_until_up(source: &mut SideBySide, up_metric: &str) -> BTreeMap<String, f64> {
    let start = Instant::now();
    loop {
        let (values, problems) = sample_round(source, 1000);
        if values[up_metric] == 1.0 {
            return values;
        }
        assert!(start.elapsed() < DEADLINE, "{problems}");
        thread::sleep(Duration::from_millis(100));
    }
}

/// Checks that each of these values exists and is plausible.
fn check_ranges(
    values: &BTreeMap<String, f64>,
    expected: &[(&str, std::ops::RangeInclusive<f64>)],
) {
    for (name, range) in expected {
        let value = values.get(*name).unwrap_or_else(|| panic!("no {name} in {values:#?}"));
        assert!(range.contains(value), "{name} is {value}");
    }
}

#[test]
#[ignore = "needs redis-server; .ci/run installs it and runs this"]
fn redis() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("redis.sock");
    let (socket, folder) = (socket.to_str().unwrap(), folder.path().to_str().unwrap());
    let arguments =
        ["--port", "0", "--unixsocket", socket, "--dir", folder, "--requirepass", "s3cret"];
    let server = start_server("redis-server", &arguments);
    let password = format!("{folder}/password");
    fs::write(&password, "wrong\n").unwrap();
    let mut source = source_of(Kind::Redis, socket, &format!("password_file = '{password}'"));
    // The file is read again, so that the corrected password is used.
    fs::write(&password, "s3cret\n").unwrap();
    wait_until_up(&mut source, "redis_up");
    run("redis-cli", &["-s", socket, "-a", "s3cret", "--no-auth-warning", "SET", "a", "b"]);
    let (values, problems) = sample_round(&mut source, 2000);
    assert_eq!(problems, "{}");
    check_ranges(
        &values,
        &[
            ("redis_keys db0", 1.0..=1.0),
            ("redis_is_primary", 1.0..=1.0),
            ("redis_memory_used", 1e5..=1e9),
            ("redis_commands_processed", 2.0..=100.0),
            ("redis_cpu_user", 0.0..=100.0),
            ("redis_collect_duration", 0.0..=10.0),
        ],
    );
    drop(server);
    let (values, problems) = sample_round(&mut source, 3000);
    assert_eq!(values["redis_up"], 0.0);
    assert!(problems.contains("redis.sock") && !problems.contains("s3cret"), "{problems}");
    assert_eq!(values.len(), 2, "only up and the duration remain: {values:?}");
}

#[test]
#[ignore = "needs nginx; .ci/run installs it and runs this"]
fn nginx() {
    let folder = tempfile::tempdir().unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let path = folder.path().display();
    let config = format!(
        "daemon off; pid {path}/pid; error_log {path}/error.log;\nevents {{}}\nhttp {{ access_log off; \
         client_body_temp_path {path}/a; proxy_temp_path {path}/b; fastcgi_temp_path {path}/c; \
         uwsgi_temp_path {path}/d; scgi_temp_path {path}/e;\nserver {{ listen {port}; location \
         /stub_status {{ stub_status; }} }} }}\n"
    );
    let file = folder.path().join("nginx.conf");
    fs::write(&file, config).unwrap();
    let arguments = ["-c", file.to_str().unwrap(), "-e", "stderr", "-g", "master_process off;"];
    let _server = start_server("/usr/sbin/nginx", &arguments);
    let mut source = source_of(Kind::Nginx, &format!("http://{port}/stub_status"), "");
    wait_until_up(&mut source, "nginx_up");
    let (values, problems) = sample_round(&mut source, 2000);
    assert_eq!(problems, "{}");
    check_ranges(
        &values,
        &[
            ("nginx_requests", 2.0..=1000.0),
            ("nginx_connections_active", 1.0..=10.0),
            ("nginx_connections_writing", 1.0..=10.0),
        ],
    );
    let mut wrong_page_source = source_of(Kind::Nginx, &format!("http://{port}/"), "");
    let (values, problems) = sample_round(&mut wrong_page_source, 3000);
    assert_eq!(values["nginx_up"], 0.0);
    assert!(problems.contains("the response is not a stub_status page"), "{problems}");
}

/// Returns the folder of Debian's programs for the newest version.
fn postgres_programs() -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").unwrap();
    versions.map(|entry| entry.unwrap().path().join("bin")).max().unwrap()
}

#[test]
#[ignore = "needs postgresql; .ci/run installs it and runs this"]
fn postgres() {
    let folder = tempfile::tempdir().unwrap();
    let programs = postgres_programs();
    let data = folder.path().join("data");
    let (path, data) = (folder.path().to_str().unwrap(), data.to_str().unwrap());
    // PostgreSQL refuses to run as root.
    run("chown", &["postgres", path]);
    let as_postgres = ["-u", "postgres", "--"];
    let program = |name: &str| programs.join(name).display().to_string();
    let init = program("initdb");
    run("runuser", &[&as_postgres[..], &[&init, "-D", data, "-A", "trust"]].concat());
    let postgres = program("postgres");
    let arguments = [&postgres, "-D", data, "-k", path, "-c", "listen_addresses=", "-F"];
    let _server = start_server("runuser", &[&as_postgres[..], &arguments].concat());
    let mut source = source_of(Kind::Postgres, path, "user = 'postgres'");
    wait_until_up(&mut source, "postgres_up");
    let sql = "CREATE TABLE t (a int); INSERT INTO t SELECT generate_series(1, 1000)";
    run("psql", &["-h", path, "-U", "postgres", "-qc", sql]);
    run("psql", &["-h", path, "-U", "postgres", "-qc", "CREATE DATABASE shop"]);
    let (values, problems) = sample_round(&mut source, 400_000);
    assert_eq!(problems, "{}");
    check_ranges(
        &values,
        &[
            ("postgres_is_standby", 0.0..=0.0),
            ("postgres_connections_max", 100.0..=100.0),
            ("postgres_connections active", 1.0..=1.0),
            ("postgres_connections idle in transaction", 0.0..=0.0),
            ("postgres_transactions_committed postgres", 1.0..=1e6),
            ("postgres_database_size shop", 1e6..=1e9),
            ("postgres_database_connections postgres", 1.0..=5.0),
            ("postgres_database_transaction_age shop", 1.0..=1e6),
            ("postgres_wal_position", 1e5..=1e12),
            ("postgres_uptime", 0.0..=1000.0),
        ],
    );
    // The connection is read-only, and a connection that the server ended is replaced.
    let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
               WHERE application_name = 'granary-agent'";
    run("psql", &["-h", path, "-U", "postgres", "-qc", sql]);
    let (values, problems) = sample_round(&mut source, 401_000);
    assert_eq!((values["postgres_up"], problems.as_str()), (1.0, "{}"));
    assert!(
        !values.contains_key("postgres_database_size shop"),
        "sizes are queried every five minutes"
    );
}

#[test]
#[ignore = "needs mariadb-server; .ci/run installs it and runs this"]
fn mysql() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let option = |name: &str, file: &str| format!("--{name}={}", path.join(file).display());
    let (data, socket) = (option("datadir", "data"), option("socket", "sock"));
    let shared_options = ["--no-defaults", "--user=root", &data];
    run(
        "mariadb-install-db",
        &[&shared_options[..], &["--auth-root-authentication-method=normal"]].concat(),
    );
    let pid = option("pid-file", "pid");
    let arguments = [&socket, &pid, "--skip-networking", "--innodb-buffer-pool-size=16M"];
    let _server = start_server("/usr/sbin/mariadbd", &[&shared_options[..], &arguments].concat());
    let address = path.join("sock").display().to_string();
    let mut source = source_of(Kind::MySql, &address, "user = 'root'");
    wait_until_up(&mut source, "mysql_up");
    let sql =
        "CREATE DATABASE shop; CREATE TABLE shop.t (a int); INSERT INTO shop.t VALUES (1), (2)";
    run("mariadb", &["--no-defaults", "-u", "root", "-S", &address, "-e", sql]);
    let (values, problems) = sample_round(&mut source, 2000);
    assert_eq!(problems, "{}");
    check_ranges(
        &values,
        &[
            ("mysql_connections", 1.0..=5.0),
            ("mysql_connections_max", 151.0..=151.0),
            ("mysql_buffer_pool_size", 16_777_216.0..=16_777_216.0),
            ("mysql_commands_insert", 1.0..=1.0),
            ("mysql_rows_inserted", 2.0..=1e6),
            ("mysql_queries", 2.0..=1e6),
            ("mysql_innodb_written", 1.0..=1e9),
        ],
    );
    let password = path.join("password");
    fs::write(&password, "wrong").unwrap();
    let settings = format!("user = 'root'\npassword_file = '{}'", password.display());
    let mut denied_source = source_of(Kind::MySql, &address, &settings);
    let (values, problems) = sample_round(&mut denied_source, 3000);
    assert_eq!(values["mysql_up"], 0.0);
    assert!(problems.contains("Access denied"), "{problems}");
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Starts PostgreSQL and MariaDB on these ports of loopback.
fn start_databases(path: &str, postgres: u16, mysql: u16) -> [Server; 2] {
    let programs = postgres_programs();
    let data = format!("{path}/postgres");
    fs::create_dir(&data).unwrap();
    run("chmod", &["755", path]);
    run("chown", &["postgres", &data]);
    let program = |name: &str| programs.join(name).display().to_string();
    run("runuser", &["-u", "postgres", "--", &program("initdb"), "-D", &data, "-A", "trust"]);
    let (server, listen) = (program("postgres"), postgres.to_string());
    let options = ["-u", "postgres", "--", &server, "-D", &data, "-k", &data, "-p", &listen, "-F"];
    let postgres = start_server("runuser", &options);
    let (data, socket) = (format!("--datadir={path}/mysql"), format!("--socket={path}/sock"));
    let shared = ["--no-defaults", "--user=root", &data];
    run(
        "mariadb-install-db",
        &[&shared[..], &["--auth-root-authentication-method=normal"]].concat(),
    );
    let (listen, pid) = (format!("--port={mysql}"), format!("--pid-file={path}/mysql.pid"));
    let options = ["--bind-address=127.0.0.1", &listen, &socket, &pid];
    let mysql = start_server("/usr/sbin/mariadbd", &[&shared[..], &options].concat());
    [postgres, mysql]
}

#[test]
#[ignore = "needs redis, nginx, postgresql, mariadb, memcached and haproxy; .ci/run runs this"]
#[expect(clippy::disallowed_methods, reason = "a deadline of a test")]
fn services_that_listen_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let [redis, locked, nginx, plain, postgres, mysql, cache, proxy] =
        std::array::from_fn(|_| free_port());
    let port = |port: u16| port.to_string();
    let redis_options =
        |p: &str| ["--port".to_owned(), p.to_owned(), "--save".into(), String::new()];
    let options = redis_options(&port(redis));
    let _redis = start_server("redis-server", &options.each_ref().map(String::as_str));
    let options = redis_options(&port(locked));
    let options = [&options.each_ref().map(String::as_str)[..], &["--requirepass", "x"]].concat();
    let _locked = start_server("redis-server", &options);
    let config = format!(
        "daemon off; pid {path}/pid; error_log {path}/error.log;\nevents {{}}\nhttp {{ access_log off; \
         client_body_temp_path {path}/a; proxy_temp_path {path}/b; fastcgi_temp_path {path}/c; \
         uwsgi_temp_path {path}/d; scgi_temp_path {path}/e;\nserver {{ listen 127.0.0.1:{nginx}; \
         location /nginx_status {{ stub_status; }} }}\nserver {{ listen 127.0.0.1:{plain}; location \
         /metrics {{ return 200 '# TYPE up gauge\\nup 1\\n'; }} }} }}\n"
    );
    let file = folder.path().join("nginx.conf");
    fs::write(&file, config).unwrap();
    let options = ["-c", file.to_str().unwrap(), "-e", "stderr", "-g", "master_process off;"];
    let _nginx = start_server("/usr/sbin/nginx", &options);
    let _databases = start_databases(path, postgres, mysql);
    let listen = port(cache);
    let _cache = start_server("memcached", &["-u", "nobody", "-l", "127.0.0.1", "-p", &listen]);
    let config = format!(
        "defaults\n mode http\n timeout connect 1s\n timeout client 5s\n timeout server 5s\nfrontend \
         f\n bind 127.0.0.1:{proxy}\n stats enable\n stats uri /stats\n"
    );
    let file = folder.path().join("haproxy.cfg");
    fs::write(&file, config).unwrap();
    let _proxy = start_server("/usr/sbin/haproxy", &["-db", "-f", file.to_str().unwrap()]);
    let status_path = Some("/nginx_status".to_owned());
    let expected = [
        (redis, Program::Redis { needs_password: false }),
        (locked, Program::Redis { needs_password: true }),
        (nginx, Program::Nginx { status_path }),
        (plain, Program::Metrics),
        (postgres, Program::Postgres),
        (mysql, Program::MySql),
        (cache, Program::Memcached),
        (proxy, Program::HaProxy),
    ];
    let start = Instant::now();
    loop {
        let (found, problems) = discover(false);
        let has = |port: u16, program: &Program| {
            let is_it = |service: &FoundService| {
                service.address.port() == port && service.program == *program
            };
            found.iter().any(is_it)
        };
        if expected.iter().all(|(port, program)| has(*port, program)) {
            assert!(problems.is_empty(), "{problems:?}");
            return;
        }
        assert!(start.elapsed() < DEADLINE, "expected {expected:?}, found {found:?}");
        thread::sleep(Duration::from_millis(200));
    }
}
