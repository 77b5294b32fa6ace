//! Discovery against an HTTP server that lists and watches as the API does.

use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    sync::mpsc::{Receiver, Sender, channel},
};

use granary_agent_kit::relabel::Labels;
use serde_json::{Value, json};

use super::*;
use crate::{Config, memory::MEMORY_MAX};

/// A request: its path with the query, the head, and the connection for the response.
type Request = (String, String, TcpStream);

/// An API that passes its requests to the test.
fn api() -> (String, Receiver<Request>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (requests, receiver): (Sender<Request>, _) = channel();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap() > 0 {}
            let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
            if requests.send((path, head.to_lowercase(), stream)).is_err() {
                return;
            }
        }
    });
    (url, receiver)
}

/// Waits for the next request to a path; the order of requests to other paths does not matter.
fn next(requests: &Receiver<Request>) -> Request {
    requests.recv_timeout(Duration::from_secs(30)).expect("no request")
}

fn respond(stream: &mut TcpStream, status: &str, body: &str) {
    let head = format!("HTTP/1.1 {status}\r\nConnection: close\r\n");
    write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
}

/// Begins the response to a watch, which lasts until the stream is dropped.
fn begin_watch(stream: &mut TcpStream) {
    write!(stream, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n").unwrap();
}

fn event(stream: &mut TcpStream, kind: &str, object: &Value) {
    let mut line = json!({"type": kind, "object": object}).to_string();
    line.push('\n');
    stream.write_all(line.as_bytes()).unwrap();
}

fn list(version: &str, next_page: &str, items: &[Value]) -> String {
    json!({"metadata": {"resourceVersion": version, "continue": next_page}, "items": items})
        .to_string()
}

fn discovery(yaml: &str) -> Kubernetes {
    discovery_within(yaml, &Memory::new(MEMORY_MAX))
}

fn discovery_within(yaml: &str, memory: &Arc<Memory>) -> Kubernetes {
    let text = format!("scrape_configs: [{{job_name: j, kubernetes_sd_configs: [{{{yaml}}}]}}]");
    let config = Config::parse(&text, "".into()).unwrap();
    Kubernetes::new(&config.jobs()[0].kubernetes_sd_configs[0], memory)
}

fn pod(name: &str, ip: &str, version: &str) -> Value {
    json!({
        "metadata": {
            "name": name, "namespace": "shop", "uid": "u1", "resourceVersion": version,
            "labels": {"app.kubernetes.io/name": "web"}, "annotations": {"prometheus.io/port": ""},
            "ownerReferences": [{"kind": "ReplicaSet", "name": "web-1", "controller": true}]
        },
        "spec": {
            "nodeName": "n1",
            "containers": [
                {"name": "web", "image": "web:1", "ports": [
                    {"name": "http", "containerPort": 80, "protocol": "TCP"},
                    {"containerPort": 81, "protocol": "TCP"}
                ]},
                {"name": "side", "image": "side:1", "ports": null}
            ],
            "initContainers": [{"name": "init", "image": "init:1"}]
        },
        "status": {
            "podIP": ip, "hostIP": "10.0.0.1", "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [{"name": "web", "containerID": "containerd://c1"}]
        }
    })
}

fn addresses(found: &[Labels]) -> Vec<&str> {
    found.iter().map(|labels| labels.get("__address__")).collect()
}

/// Waits until the targets have changed.
fn changed(cluster: &mut Kubernetes) -> Vec<Labels> {
    let watch = Stopwatch::start();
    loop {
        assert!(watch.elapsed() < Duration::from_secs(30), "the targets do not change");
        if let Ok(Some(found)) = cluster.refresh() {
            return found.targets;
        }
        thread::yield_now();
    }
}

/// A list of two pages, changes, a bookmark, the end of the watch, and a version that the API no
/// longer has.
#[test]
#[expect(clippy::too_many_lines, reason = "one history of the API, in order")]
fn pods_follow_the_api_through_changes_bookmarks_and_expired_versions() {
    let (url, requests) = api();
    let mut cluster = discovery(&format!(
        "role: pod, api_server: '{url}', authorization: {{credentials: s3cret}}, \
         namespaces: {{names: [shop]}}, selectors: [{{role: pod, label: 'app=a b'}}]"
    ));
    let server = thread::spawn(move || {
        let (path, head, mut stream) = next(&requests);
        assert!(path.starts_with("/api/v1/namespaces/shop/pods?labelSelector=app%3Da%20b&"));
        assert!(head.contains("authorization: bearer s3cret"), "{head}");
        respond(&mut stream, "200 OK", &list("9", "page 2", &[pod("a", "10.1.0.1", "3")]));
        let (path, _, mut stream) = next(&requests);
        assert!(path.ends_with("continue=page%202"), "{path}");
        respond(&mut stream, "200 OK", &list("10", "", &[pod("b", "10.1.0.2", "4")]));
        let (path, _, mut stream) = next(&requests);
        assert!(path.contains("watch=1") && path.ends_with("resourceVersion=10"), "{path}");
        assert!(path.contains("allowWatchBookmarks=true&timeoutSeconds=240"), "{path}");
        begin_watch(&mut stream);
        (requests, stream)
    });
    let found = changed(&mut cluster);
    assert_eq!(
        addresses(&found),
        [
            ["10.1.0.1:80", "10.1.0.1:81", "10.1.0.1", "10.1.0.1"],
            ["10.1.0.2:80", "10.1.0.2:81", "10.1.0.2", "10.1.0.2"]
        ]
        .as_flattened()
    );
    let mut expected: Vec<(&str, &str)> = vec![("__address__", "10.1.0.1:80")];
    let meta = [
        ("namespace", "shop"),
        ("pod_annotationpresent_prometheus_io_port", "true"),
        ("pod_container_id", "containerd://c1"),
        ("pod_container_image", "web:1"),
        ("pod_container_init", "false"),
        ("pod_container_name", "web"),
        ("pod_container_port_name", "http"),
        ("pod_container_port_number", "80"),
        ("pod_container_port_protocol", "TCP"),
        ("pod_controller_kind", "ReplicaSet"),
        ("pod_controller_name", "web-1"),
        ("pod_host_ip", "10.0.0.1"),
        ("pod_ip", "10.1.0.1"),
        ("pod_label_app_kubernetes_io_name", "web"),
        ("pod_labelpresent_app_kubernetes_io_name", "true"),
        ("pod_name", "a"),
        ("pod_node_name", "n1"),
        ("pod_phase", "Running"),
        ("pod_ready", "true"),
        ("pod_uid", "u1"),
    ]
    .map(|(name, value)| (format!("__meta_kubernetes_{name}"), value));
    expected.extend(meta.iter().map(|(name, value)| (name.as_str(), *value)));
    assert_eq!(found[0].iter().collect::<Vec<_>>(), expected);
    assert_eq!(found[3].get("__meta_kubernetes_pod_container_init"), "true");

    let (requests, mut stream) = server.join().unwrap();
    // A change of the version alone is no change of the targets.
    event(&mut stream, "MODIFIED", &pod("a", "10.1.0.1", "11"));
    event(&mut stream, "DELETED", &pod("b", "10.1.0.2", "12"));
    assert_eq!(changed(&mut cluster).len(), 4);
    event(&mut stream, "ADDED", &pod("c", "fd00::1", "13"));
    assert_eq!(addresses(&changed(&mut cluster))[4], "[fd00::1]:80");
    event(&mut stream, "BOOKMARK", &json!({"metadata": {"resourceVersion": "20"}}));
    drop(stream);
    let (path, _, mut stream) = next(&requests);
    assert!(path.ends_with("resourceVersion=20"), "{path}");
    begin_watch(&mut stream);
    event(&mut stream, "ERROR", &json!({"code": 410, "message": "too old"}));
    let (path, _, mut stream) = next(&requests);
    assert!(path.contains("limit=500"), "the list is read again: {path}");
    respond(&mut stream, "200 OK", &list("30", "", &[]));
    assert_eq!(changed(&mut cluster), []);
    let (path, _, mut stream) = next(&requests);
    assert!(path.ends_with("resourceVersion=30"), "{path}");
    respond(&mut stream, "410 Gone", "");
    let (path, _, mut stream) = next(&requests);
    assert!(path.contains("limit=500"), "{path}");
    respond(&mut stream, "403 Forbidden", "");
    let (path, ..) = next(&requests);
    assert!(path.contains("limit=500"), "a fault is retried: {path}");
    let fault = cluster.refresh().unwrap_err();
    assert!(fault.contains("403") && fault.contains("/pods?"), "{fault}");
}

/// Regression: each broken connection of a watch made the API list all objects again.
#[test]
fn a_watch_whose_connection_breaks_continues_from_its_last_version() {
    let (url, requests) = api();
    let mut cluster = discovery(&format!("role: pod, api_server: '{url}'"));
    let server = thread::spawn(move || {
        let (_, _, mut stream) = next(&requests);
        respond(&mut stream, "200 OK", &list("10", "", &[]));
        let (path, _, mut stream) = next(&requests);
        assert!(path.ends_with("resourceVersion=10"), "{path}");
        // The end of the response is missing.
        let event = json!({"type": "ADDED", "object": pod("a", "10.1.0.1", "11")});
        let chunk = format!("{event}\n");
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        write!(stream, "{head}{:x}\r\n{chunk}\r\n", chunk.len()).unwrap();
        drop(stream);
        next(&requests).0
    });
    changed(&mut cluster);
    let path = server.join().unwrap();
    assert!(path.contains("watch=1") && path.ends_with("resourceVersion=11"), "{path}");
    changed(&mut cluster);
    let fault = cluster.refresh().unwrap_err();
    assert!(fault.contains("/pods?"), "the broken connection is reported: {fault}");
}

/// Returns the targets of lists by resource.
fn targets_of(role: &str, lists: &[(&str, Value)]) -> Vec<Labels> {
    let (url, requests) = api();
    let lists: Vec<(String, String)> = lists
        .iter()
        .map(|(name, item)| ((*name).to_owned(), list("1", "", std::slice::from_ref(item))))
        .collect();
    thread::spawn(move || {
        let mut watches = Vec::new();
        for (path, _, mut stream) in requests {
            if path.contains("watch=1") {
                begin_watch(&mut stream);
                watches.push(stream);
                continue;
            }
            let found = lists.iter().find(|(name, _)| path.contains(&format!("/{name}?")));
            match found {
                Some((_, body)) => respond(&mut stream, "200 OK", body),
                None => respond(&mut stream, "404 Not Found", ""),
            }
        }
    });
    changed(&mut discovery(&format!(
        "role: {role}, api_server: '{url}', attach_metadata: {{node: true}}"
    )))
}

fn node() -> Value {
    json!({
        "metadata": {"name": "n1", "labels": {"zone": "z1"}}, "spec": {"providerID": "p://1"},
        "status": {
            "addresses": [
                {"type": "Hostname", "address": "n1.example"},
                {"type": "InternalIP", "address": "10.0.0.1"}
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}}
        }
    })
}

fn service() -> Value {
    json!({
        "metadata": {"name": "web", "namespace": "shop", "annotations": {"scrape": "true"}},
        "spec": {
            "type": "ClusterIP", "clusterIP": "10.2.0.1",
            "ports": [{"name": "http", "port": 80, "protocol": "TCP"}]
        }
    })
}

fn check(labels: &Labels, expected: &[(&str, &str)]) {
    for (name, value) in expected {
        assert_eq!(labels.get(&format!("__meta_kubernetes_{name}")), *value, "{name}");
    }
}

#[test]
fn endpoints_and_slices_have_the_labels_of_service_pod_and_node() {
    let reference = json!({"kind": "Pod", "name": "a", "namespace": "shop"});
    let others = [("services", service()), ("pods", pod("a", "10.1.0.1", "1")), ("nodes", node())];
    let endpoints = json!({
        "metadata": {"name": "web", "namespace": "shop", "labels": {"team": "t"}},
        "subsets": [{
            "addresses": [{"ip": "10.1.0.1", "nodeName": "n1", "targetRef": reference}],
            "notReadyAddresses": [{"ip": "10.1.0.9"}],
            "ports": [{"name": "http", "port": 80, "protocol": "TCP"}]
        }]
    });
    let shared = [
        ("namespace", "shop"),
        ("service_name", "web"),
        ("service_annotation_scrape", "true"),
        ("pod_name", "a"),
        ("pod_container_name", "web"),
        ("node_label_zone", "z1"),
        ("node_name", "n1"),
    ];
    let mut lists = vec![("endpoints", endpoints)];
    lists.extend(others.clone());
    let found = targets_of("endpoints", &lists);
    assert_eq!(addresses(&found), ["10.1.0.1:80", "10.1.0.9:80", "10.1.0.1:81"]);
    check(&found[0], &shared);
    let own = [
        ("endpoints_name", "web"),
        ("endpoints_label_team", "t"),
        ("endpoint_ready", "true"),
        ("endpoint_port_name", "http"),
        ("endpoint_port_protocol", "TCP"),
        ("endpoint_node_name", "n1"),
        ("endpoint_address_target_kind", "Pod"),
        ("endpoint_address_target_name", "a"),
    ];
    check(&found[0], &own);
    check(&found[1], &[("endpoint_ready", "false"), ("pod_name", "")]);
    check(&found[2], &[("pod_container_port_number", "81"), ("service_name", "web")]);

    let slice = json!({
        "metadata": {
            "name": "web-x", "namespace": "shop", "labels": {"kubernetes.io/service-name": "web"}
        },
        "addressType": "IPv4",
        "endpoints": [{
            "addresses": ["10.1.0.1"], "conditions": {"ready": true, "serving": null},
            "nodeName": "n1", "zone": "z1", "targetRef": reference
        }],
        "ports": [{"name": "http", "port": 80, "protocol": "TCP", "appProtocol": "h2"}]
    });
    let mut lists = vec![("endpointslices", slice)];
    lists.extend(others);
    let found = targets_of("endpointslice", &lists);
    assert_eq!(addresses(&found), ["10.1.0.1:80", "10.1.0.1:81"]);
    check(&found[0], &shared);
    let own = [
        ("endpointslice_name", "web-x"),
        ("endpointslice_address_type", "IPv4"),
        ("endpointslice_port", "80"),
        ("endpointslice_port_app_protocol", "h2"),
        ("endpointslice_endpoint_conditions_ready", "true"),
        ("endpointslice_endpoint_conditions_serving", ""),
        ("endpointslice_endpoint_node_name", "n1"),
        ("endpointslice_endpoint_zone", "z1"),
        ("endpointslice_address_target_name", "a"),
    ];
    check(&found[0], &own);
}

#[test]
fn nodes_services_and_ingresses_become_targets() {
    let found = targets_of("node", &[("nodes", node())]);
    assert_eq!((addresses(&found), found[0].get("instance")), (vec!["10.0.0.1:10250"], "n1"));
    let own = [
        ("node_name", "n1"),
        ("node_provider_id", "p://1"),
        ("node_label_zone", "z1"),
        ("node_address_InternalIP", "10.0.0.1"),
        ("node_address_Hostname", "n1.example"),
    ];
    check(&found[0], &own);
    let found = targets_of("service", &[("services", service())]);
    assert_eq!(addresses(&found), ["web.shop.svc:80"]);
    let own = [
        ("service_port_name", "http"),
        ("service_port_number", "80"),
        ("service_type", "ClusterIP"),
        ("service_cluster_ip", "10.2.0.1"),
    ];
    check(&found[0], &own);
    let ingress = json!({
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "ingressClassName": "nginx", "tls": [{"hosts": ["*.example.com"]}],
            "rules": [
                {"host": "a.example.com", "http": {"paths": [{"path": "/x"}, {}]}},
                {"host": "example.com"}
            ]
        }
    });
    let found = targets_of("ingress", &[("ingresses", ingress)]);
    assert_eq!(addresses(&found), ["a.example.com", "a.example.com", "example.com"]);
    check(&found[0], &[("ingress_scheme", "https"), ("ingress_path", "/x")]);
    check(&found[1], &[("ingress_path", "/"), ("ingress_class_name", "nginx")]);
    check(&found[2], &[("ingress_scheme", "http"), ("ingress_host", "example.com")]);
}

#[test]
fn inside_of_a_cluster_the_service_account_is_used() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/tls");
    let folder = tempfile::tempdir().unwrap();
    fs::copy(data.join("authority.pem"), folder.path().join("ca.crt")).unwrap();
    fs::write(folder.path().join("namespace"), "shop\n").unwrap();
    let text = "scrape_configs: [{job_name: j, kubernetes_sd_configs: \
                [{role: pod, namespaces: {own_namespace: true}, attach_metadata: {node: true}}]}]";
    let config = Config::parse(text, "".into()).unwrap();
    let settings = &config.jobs()[0].kubernetes_sd_configs[0];
    let variable =
        |name: &str| Some(if name.ends_with("HOST") { "fd00::1" } else { "6443" }.to_owned());
    let memory = Memory::new(MEMORY_MAX);
    let watches = watches(settings, &memory, variable, folder.path()).unwrap();
    let text = format!("{watches:?}");
    for part in [
        "\"https://[fd00::1]:6443/api/v1/namespaces/shop/pods?\"",
        "\"https://[fd00::1]:6443/api/v1/nodes?\"",
        "/token\"",
        "/ca.crt\"",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    let mut outside = Kubernetes::with_cluster(settings, &memory, |_| None, folder.path());
    let fault = outside.refresh().unwrap_err();
    assert!(fault.contains("set api_server"), "{fault}");
}

fn bare_pod(name: &str, annotation: &str) -> Value {
    json!({"metadata": {"name": name, "annotations": {"a": annotation}, "resourceVersion": "1"}})
}

/// Waits until the charged memory has this property.
fn wait_for_memory(memory: &Memory, is_reached: impl Fn(usize) -> bool) {
    let watch = Stopwatch::start();
    while !is_reached(memory.used()) {
        assert!(watch.elapsed() < Duration::from_secs(30), "{} bytes", memory.used());
        thread::yield_now();
    }
}

/// Regression: a watch could use twice the memory limit of the scraper, without a count.
#[test]
fn objects_are_charged_to_the_memory_of_the_scraper_until_they_are_gone() {
    let (url, requests) = api();
    let memory = Memory::new(1 << 20);
    let mut cluster = discovery_within(&format!("role: pod, api_server: '{url}'"), &memory);
    let (before, after) = ("x".repeat(100_000), "x".repeat(50_000));
    let server = thread::spawn(move || {
        let (_, _, mut stream) = next(&requests);
        respond(&mut stream, "200 OK", &list("1", "", &[bare_pod("a", &before)]));
        let (_, _, mut stream) = next(&requests);
        begin_watch(&mut stream);
        (requests, stream)
    });
    changed(&mut cluster);
    let (requests, mut stream) = server.join().unwrap();
    wait_for_memory(&memory, |used| (100_000..110_000).contains(&used));
    event(&mut stream, "ADDED", &bare_pod("b", &after));
    wait_for_memory(&memory, |used| (150_000..160_000).contains(&used));
    event(&mut stream, "MODIFIED", &bare_pod("a", ""));
    wait_for_memory(&memory, |used| (50_000..60_000).contains(&used));
    event(&mut stream, "DELETED", &bare_pod("b", ""));
    wait_for_memory(&memory, |used| used < 10_000);
    assert_eq!(memory.refused(), 0);
    // An event that does not fit is reported, and the list is read again.
    let large = json!({"type": "ADDED", "object": bare_pod("c", &"x".repeat(2 << 20))});
    // The client closes the connection before it has read everything.
    drop(stream.write_all(format!("{large}\n").as_bytes()));
    let (path, _, mut stream) = next(&requests);
    assert!(path.contains("limit=500"), "{path}");
    assert_eq!(changed(&mut cluster), [], "pods without an address");
    let fault = cluster.refresh().unwrap_err();
    assert!(fault.contains("scrape_memory_max"), "{fault}");
    respond(&mut stream, "200 OK", &list("2", "", &[]));
    wait_for_memory(&memory, |used| used == 0);
    assert_eq!(memory.refused(), 1);
}

#[test]
fn lists_beyond_the_memory_of_the_scraper_are_refused() {
    // A long text, and many objects with a short text.
    let many: Vec<Value> = (0..2_000).map(|n| bare_pod(&format!("p{n}"), "")).collect();
    for items in [vec![bare_pod("a", &"x".repeat(900_000))], many] {
        let (url, requests) = api();
        let memory = Memory::new(1 << 20);
        let mut cluster = discovery_within(&format!("role: pod, api_server: '{url}'"), &memory);
        let server = thread::spawn(move || {
            let (_, _, mut stream) = next(&requests);
            let body = list("1", "", &items);
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
            // The client closes the connection before it has read everything.
            drop(stream.write_all(format!("{head}{body}").as_bytes()));
        });
        let fault = cluster.refresh().unwrap_err();
        assert!(fault.contains("no memory is free") && fault.contains("/pods?"), "{fault}");
        server.join().unwrap();
        assert_eq!((memory.used(), memory.refused()), (0, 1));
    }
}
