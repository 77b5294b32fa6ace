"""Three nodes of a cluster under faults: kills, stops longer than the lease, clean stops, kills of
MongoDB, cuts and delays of connections in each direction, a wiped disk, a member struck and back.

Senders of numbered batches and a pair of senders of the same series by remote write go on meanwhile,
and a query runs each 100 ms. At the end each acknowledged sample counts once at every level, as each
node answers as the holder. The data directories stay for a comparison of the disks.

    cluster_faults.py --granary PATH --secantus PATH --dir DIR [--rounds 11] [--seed 1]
        [--full] [--seconds N] [--namespaces] [--tls] [--nginx]

Each round has one fault, all equally often; with --full, one run has COUNTS, in random order.
Connections pass through proxies of this script, or, with --namespaces (as root), through network
namespaces whose links are set down.
"""

import argparse
import ctypes
import http.client
import json
import os
import random
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

from links import Link, free_port, wait_until

SAMPLES = 20
LEVELS = ["1m", "5m", "1h", "1d"]
STOP_SECONDS = 9
CUT_SECONDS = 9


def now():
    return time.monotonic()


class Proxies:
    """Every connection to MongoDB and between nodes passes through a proxy of its own."""

    def __init__(self):
        self.mongodb = ("127.0.0.1", free_port())
        self.to_mongodb, self.to_node = [], []

    def prefix(self, _):
        return []

    def add_node(self, _):
        port = free_port()
        self.to_mongodb.append(Link(self.mongodb))
        self.to_node.append(Link(("127.0.0.1", port)))
        mongodb = ("127.0.0.1", self.to_mongodb[-1].port)
        return ("127.0.0.1", port), ("127.0.0.1", self.to_node[-1].port), mongodb

    def cut(self, node, peer, ways, is_cut):
        links = {"mongodb": [self.to_mongodb[node]], "nodes": [self.to_node[node]]}
        for link in links[peer]:
            for way in ways:
                link.cut[way] = is_cut

    def delay(self, seconds):
        for link in self.to_mongodb + self.to_node:
            link.delay = seconds

    def close(self):
        pass


class Namespaces:
    """Each process is in a network namespace of its own, without a default route. A hub forwards."""

    def __init__(self):
        self.tag = f"g{os.getpid() % 10000}"
        self.names = []
        self.mongodb = ("10.77.9.2", 27017)
        self.ip("netns", "add", self.tag + "hub")
        subprocess.run(["ip", "netns", "exec", self.tag + "hub", "sysctl", "-qw",
                        "net.ipv4.ip_forward=1"], check=True)
        self.add("db", 9)
        self.add("client", 8)
        # This process moves into the namespace of the clients.
        with open(f"/run/netns/{self.tag}client") as file:
            if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), 0x40000000):
                raise OSError(ctypes.get_errno(), "setns")

    def ip(self, *args):
        subprocess.run(["ip", *args], check=True)

    def add(self, name, number):
        space, hub = self.tag + name, self.tag + "hub"
        self.names.append(name)
        self.ip("netns", "add", space)
        inner, outer = f"{self.tag}i{number}", f"{self.tag}o{number}"
        self.ip("link", "add", inner, "netns", space, "type", "veth", "peer", "name", outer,
                "netns", hub)
        self.ip("-n", space, "addr", "add", f"10.77.{number}.2/24", "dev", inner)
        self.ip("-n", hub, "addr", "add", f"10.77.{number}.1/24", "dev", outer)
        for where, link in [(space, inner), (space, "lo"), (hub, outer)]:
            self.ip("-n", where, "link", "set", link, "up")
        self.ip("-n", space, "route", "add", "10.77.0.0/16", "via", f"10.77.{number}.1")

    def prefix(self, who):
        name = {"mongodb": "db", "client": "client"}.get(who, f"n{who}")
        return ["ip", "netns", "exec", self.tag + name]

    def add_node(self, node):
        self.add(f"n{node}", node + 1)
        address = (f"10.77.{node + 1}.2", 7117)
        return address, address, self.mongodb

    def cut(self, node, peer, ways, is_cut):
        space, change = f"{self.tag}n{node}", "add" if is_cut else "del"
        others = [f"10.77.{n + 1}.2" for n in range(3) if n != node]
        peers = [self.mongodb[0]] if peer == "mongodb" else others
        if set(ways) == {"up", "down"} and peer == "all":
            state = "down" if is_cut else "up"
            self.ip("-n", self.tag + "hub", "link", "set", f"{self.tag}o{node + 1}", state)
            return
        for address in peers:
            if "up" in ways:
                self.ip("-n", space, "route", change, "blackhole", f"{address}/32")
            if "down" in ways:
                where = "db" if peer == "mongodb" else f"n{int(address.split('.')[2]) - 1}"
                self.ip("-n", self.tag + where, "route", change, "blackhole",
                        f"10.77.{node + 1}.2/32")

    def delay(self, _):
        pass

    def close(self):
        for name in self.names + ["hub"]:
            subprocess.run(["ip", "netns", "del", self.tag + name], check=False)


class Cluster:
    def __init__(self, options):
        self.options = options
        self.folder = Path(options.dir)
        self.net = Namespaces() if options.namespaces else Proxies()
        self.scheme = "https" if options.tls else "http"
        self.key, self.context = None, None
        self.env = dict(os.environ, GRANARY__TELEMETRY__INTERVAL="")
        self.processes = {}
        self.addresses, self.fronts = [], []
        if options.tls:
            self.make_certificates()
        try:
            self.start_all()
        except BaseException:
            self.close()
            raise

    def start_all(self):
        self.start_mongodb()
        for node in range(3):
            self.add_node(node)
        for node in range(3):
            self.start(node)
            if node == 0:
                wait_until("the first holder", lambda: self.ready(0))
                key = self.folder / "0/data/first-key"
                if key.exists():
                    self.key = key.read_text().strip()
                    self.make_key()
        wait_until("all nodes", lambda: all(self.ready(node) for node in range(3)))
        self.targets = list(self.addresses)
        if self.options.nginx:
            self.start_nginx()

    def make_certificates(self):
        self.tls = self.folder / "tls"
        hosts = "127.0.0.1,10.77.1.2,10.77.2.2,10.77.3.2"
        for args in (["ca"], ["server", "--host", hosts]):
            subprocess.run([self.options.granary, "cert", *args, "--dir", self.tls], check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.env["SSL_CERT_FILE"] = str(self.tls / "ca.pem")
        self.context = ssl.create_default_context(cafile=self.tls / "ca.pem")

    def run(self, name, who, command):
        log = open(self.folder / f"{name}.log", "ab")
        command = self.net.prefix(who) + [str(part) for part in command]
        self.processes[name] = subprocess.Popen(command, env=self.env, stdout=log, stderr=log)

    def start_mongodb(self):
        storage = self.folder / "mongodb"
        storage.mkdir(exist_ok=True)
        host, port = self.net.mongodb
        self.run("mongodb", "mongodb", [self.options.secantus, "--host", host, "--port", port,
                                        "--sync-on-commit", "--storage-path", storage])
        wait_until("MongoDB", lambda: socket.create_connection((host, port), 1).close() or True)

    def add_node(self, node):
        folder = self.folder / str(node)
        folder.mkdir()
        address, front, mongodb = self.net.add_node(node)
        self.addresses.append(address)
        self.fronts.append(front)
        options = "directConnection=true&serverSelectionTimeoutMS=2000&connectTimeoutMS=2000"
        settings = f"""
[cluster]
uri = "mongodb://{mongodb[0]}:{mongodb[1]}/?{options}"
replicas = 3
advertise = "{self.scheme}://{front[0]}:{front[1]}"
[storage]
checkpoint_interval = "1s"
[security]
access = {str(self.options.tls).lower()}
"""
        if not self.options.tls and address[0] != "127.0.0.1":
            settings += "open = true\n"
        if self.options.tls:
            settings += f"""[tls]
certificate_file = "{self.tls}/server.pem"
key_file = "{self.tls}/server.key"
"""
        if self.options.nginx:
            settings += '[server]\ntrusted_proxies = ["127.0.0.1"]\n'
        (folder / "granary.toml").write_text(settings)

    def start(self, node):
        folder, (host, port) = self.folder / str(node), self.addresses[node]
        self.run(str(node), node, [self.options.granary, "serve", "--data-dir", folder / "data",
                                   "--listen", f"{host}:{port}", "--config",
                                   folder / "granary.toml"])

    def make_key(self):
        """Each take replaces the first key while there is no other one of an administrator."""
        body = json.dumps({"name": "faults", "scopes": ["admin", "operate", "ingest", "read"]})
        status, made = self.request(self.addresses[0], "POST", "/api/v1/access/keys", body,
                                    {"Content-Type": "application/json"})
        if status != 201:
            raise SystemExit(f"cannot make a key: {made}")
        self.key = json.loads(made)["token"]

    def start_nginx(self):
        """All senders and queries pass through one address, as users of a load balancer."""
        port, folder = free_port(), self.folder / "nginx"
        folder.mkdir()
        servers = "".join(f"server {h}:{p} max_fails=1 fail_timeout=1s; " for h, p in self.fronts)
        secure = f"proxy_ssl_trusted_certificate {self.tls}/ca.pem; proxy_ssl_verify on; " \
                 "proxy_ssl_name 127.0.0.1; " if self.options.tls else ""
        listen = f"listen 127.0.0.1:{port}"
        if self.options.tls:
            listen += f" ssl; ssl_certificate {self.tls}/server.pem; ssl_certificate_key " \
                      f"{self.tls}/server.key"
        paths = "".join(f"{kind}_temp_path {folder}/{kind}; " for kind in
                        ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"])
        (folder / "conf").write_text(
            f"daemon off; pid {folder}/pid; error_log {folder}/error.log;\n"
            f"events {{ worker_connections 512; }}\n"
            f"http {{ access_log off; {paths}\n upstream nodes {{ {servers} }}\n"
            f"server {{ {listen}; client_max_body_size 16m; location / {{ {secure}\n"
            f"proxy_pass {self.scheme}://nodes; proxy_connect_timeout 2s; proxy_read_timeout 2s;\n"
            "proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;\n"
            "proxy_next_upstream error timeout http_503 non_idempotent;\n"
            f"proxy_next_upstream_timeout 8s; }} }} }}\n")
        self.run("nginx", "client", ["nginx", "-c", folder / "conf", "-p", folder])
        wait_until("nginx", lambda: socket.create_connection(("127.0.0.1", port), 1).close() or 1)
        self.targets = [("127.0.0.1", port)]

    def request(self, address, method, path, body=None, headers=None, seconds=4):
        """Returns the status and the body, or raises."""
        if self.context:
            connection = http.client.HTTPSConnection(*address, timeout=seconds,
                                                     context=self.context)
        else:
            connection = http.client.HTTPConnection(*address, timeout=seconds)
        headers = dict(headers or {})
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def ready(self, node):
        return self.request(self.addresses[node], "GET", "/readyz")[0] == 200

    def holds(self, node):
        try:
            _, text = self.request(self.addresses[node], "GET", "/metrics", seconds=2)
            return b"\ngranary_cluster_holds 1\n" in text
        except (OSError, http.client.HTTPException):
            return False

    def holder(self):
        found = []

        def look():
            found[:] = [node for node in range(3) if self.holds(node)]
            return found

        wait_until("a holder", look)
        return found[0]

    def command(self, node, *args):
        host, port = self.addresses[node]
        env = dict(self.env, **({"GRANARY_KEY": self.key} if self.key else {}))
        if self.options.tls:
            env["GRANARY_CA_FILE"] = str(self.tls / "ca.pem")
        command = [self.options.granary, "cluster", *args, "--url",
                   f"{self.scheme}://{host}:{port}"]
        return subprocess.run(command, env=env, capture_output=True, text=True)

    def name(self, node):
        host, port = self.fronts[node]
        return f"{host.replace('.', '_')}-{port}"

    def chart(self, address, metric, display, level, seconds=4):
        path = f"/api/v1/chart?metric={metric}&display={display}&resolution={level}&range=6h"
        status, body = self.request(address, "GET", path, seconds=seconds)
        answer = json.loads(body)
        if status != 200:
            return status, answer
        series = answer["series"]
        points = series[0]["points"] if series else []
        return status, sum(point[1] or 0 for point in points)

    def signal(self, name, number):
        self.processes[name].send_signal(number)

    def kill(self, name):
        self.processes[name].kill()
        self.processes[name].wait()

    def stop(self, name):
        self.processes[name].terminate()
        if self.processes[name].wait(40) != 0:
            raise SystemExit(f"{name} did not stop cleanly")

    def close(self):
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
                process.wait()
        self.net.close()


class Sender(threading.Thread):
    """Repeats each numbered request at the next address until it is acknowledged."""

    def __init__(self, cluster, send):
        super().__init__(daemon=True)
        self.cluster, self.send = cluster, send
        self.acknowledged, self.stops, self.failure = 0, False, None
        self.last, self.longest = now(), 0.0
        self.start()

    def run(self):
        number, target, targets = 1, 0, self.cluster.targets
        while not self.stops:
            try:
                done = self.send(targets[target], number)
            except (OSError, http.client.HTTPException):
                done = False
            except Exception as cause:
                self.failure = cause
                raise
            if done:
                self.longest = max(self.longest, now() - self.last)
                self.acknowledged, self.last = number, now()
                number += 1
            if not done or number % 10 == 0:
                target = (target + 1) % len(targets)
            if not done:
                time.sleep(0.02)

    def wait_for_more(self, seconds=120):
        before = self.acknowledged
        wait_until("samples", lambda: self.failure or self.acknowledged > before + 2, seconds)
        if self.failure:
            raise SystemExit(f"a sender failed: {self.failure}")

    def gap(self):
        """Returns the longest time between two acknowledgements since the last call."""
        longest, self.longest = self.longest, 0.0
        return longest

    def end(self):
        self.stops = True
        self.join(60)
        return self.acknowledged


def batches(cluster):
    def send(address, number):
        sample = {"metric": "numbered", "kind": "delta", "value": 1}
        batch = {"agent": "sender", "epoch": 1, "seq": number, "samples": [sample] * SAMPLES}
        status, body = cluster.request(address, "POST", "/api/v1/ingest", json.dumps(batch),
                                       {"Content-Type": "application/json"})
        if status not in (200, 429, 502, 503, 504):
            raise ValueError(f"{status}: {body}")
        return status == 200

    return Sender(cluster, send)


def varint(number):
    out = bytearray()
    while number >= 128:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def writes(cluster, start):
    def send(address, number):
        label = field(1, field(1, b"__name__") + field(2, b"written"))
        at = start + number * 10
        sample = varint(1 << 3 | 1) + struct.pack("<d", 1.0) + varint(2 << 3) + varint(at)
        body = field(1, label + field(2, sample))
        # Snappy: the length, and one literal.
        body = varint(len(body)) + bytes([60 << 2, len(body) - 1]) + body
        status, text = cluster.request(address, "POST", "/api/v1/write", body, {
            "Content-Type": "application/x-protobuf", "Content-Encoding": "snappy"})
        if status not in (200, 204, 429, 502, 503, 504):
            raise ValueError(f"{status}: {text}")
        return status < 300

    return Sender(cluster, send)


class Queries(threading.Thread):
    """A query each 100 ms: its answer has all that was acknowledged before, or says what is missing."""

    def __init__(self, cluster, sender):
        super().__init__(daemon=True)
        self.cluster, self.sender = cluster, sender
        self.right, self.refused, self.silent, self.wrong, self.stops = 0, 0, 0, [], False
        self.start()

    def run(self):
        turn = 0
        while not self.stops:
            due, turn = now() + 0.1, turn + 1
            least = self.sender.acknowledged * SAMPLES
            try:
                status, found = self.cluster.chart(
                    self.cluster.targets[turn % len(self.cluster.targets)], "numbered", "total",
                    LEVELS[turn % len(LEVELS)], 3)
                # One more batch may be on its way.
                most = (self.sender.acknowledged + 1) * SAMPLES
                if status == 200 and least <= found <= most:
                    self.right += 1
                elif status in (502, 503, 504) and (status != 503 or found.get("message")):
                    self.refused += 1
                else:
                    self.wrong.append((status, found, least, most))
            except json.JSONDecodeError:
                # A page of the load balancer.
                self.refused += 1
            except (OSError, http.client.HTTPException):
                self.silent += 1
            time.sleep(max(0, due - now()))


def interrupt(cluster, sender, fault):
    """Returns the longest time without acknowledgements; all is healed afterwards."""
    holder = cluster.holder()
    other = (holder + 1) % 3
    sender.gap()

    def blocked():
        sender.wait_for_more()
        return sender.gap()

    def cut(peer, ways, seconds=CUT_SECONDS):
        cluster.net.cut(holder, peer, ways, True)
        # Nobody may reach a holder behind the cut, whose lease goes on.
        end = threading.Timer(seconds, cluster.net.cut, (holder, peer, ways, False))
        end.start()
        outage = blocked()
        end.join()
        return outage

    if fault == "kill":
        cluster.kill(str(holder))
        outage = blocked()
        cluster.start(holder)
    elif fault == "clean stop":
        cluster.stop(str(holder))
        outage = blocked()
        cluster.start(holder)
    elif fault == "suspension":
        cluster.signal(str(holder), signal.SIGSTOP)
        outage = blocked()
        time.sleep(max(0, STOP_SECONDS - outage))
        cluster.signal(str(holder), signal.SIGCONT)
    elif fault == "kill of MongoDB":
        cluster.kill("mongodb")
        time.sleep(2)
        cluster.start_mongodb()
        outage = blocked()
    elif fault == "holder cut from MongoDB":
        outage = cut("mongodb", ("up", "down"))
    elif fault == "requests to MongoDB cut":
        outage = cut("mongodb", ("up",))
    elif fault == "answers of MongoDB cut":
        outage = cut("mongodb", ("down",))
    elif fault == "holder cut from nodes":
        outage = cut("nodes", ("up", "down"), 4)
    elif fault == "slow links":
        cluster.net.delay(0.15)
        outage = blocked()
        time.sleep(5)
        cluster.net.delay(0)
    elif fault == "wiped disk":
        cluster.kill(str(other))
        shutil.rmtree(cluster.folder / str(other) / "data")
        outage = blocked()
        cluster.start(other)
    else:
        cluster.kill(str(other))
        # The holder reads the members every ten seconds.
        wait_until("the strike", lambda: cluster.command(
            holder, "strike", cluster.name(other)).returncode == 0)
        outage = blocked()
        cluster.start(other)
    return outage


FAULTS = ["kill", "clean stop", "suspension", "kill of MongoDB", "holder cut from MongoDB",
          "requests to MongoDB cut", "answers of MongoDB cut", "holder cut from nodes",
          "slow links", "wiped disk", "struck and back"]
COUNTS = [100, 30, 50, 30, 30, 30, 30, 30, 10, 1, 1]
TAKEOVERS = FAULTS[:1] + FAULTS[2:3] + FAULTS[4:7]


def settled(cluster, is_over=False):
    """Returns whether all nodes are members that have what was deleted, and at the end everything."""
    done = cluster.command(0, "status", "--json")
    if done.returncode:
        return False
    status = json.loads(done.stdout)
    least = status["last_record"] if is_over else status["cut"]
    floors = [node["floor"] for node in status["nodes"]]
    return len(floors) == 3 and all(floor is not None and floor >= least for floor in floors)


def check_totals(cluster, written):
    holders = set()
    while len(holders) < 3:
        holder = cluster.holder()
        holders.add(holder)
        for node in range(3):
            for level in LEVELS:
                for (metric, display), expected in written.items():
                    found = []

                    def read():
                        found[:] = cluster.chart(cluster.addresses[node], metric, display, level)
                        return found[0] == 200

                    wait_until("an answer", read)
                    if found[1] != expected:
                        raise SystemExit(f"{metric} at {level}, holder {holder}, node {node}: "
                                         f"{found[1]}, {expected} were acknowledged")
        if len(holders) < 3:
            wait_until("the hand-over", lambda: cluster.command(
                holder, "hand-over").returncode == 0 and cluster.holder() != holder)
            # Two nodes would hand the store to each other.
            if cluster.holder() in holders and len(holders) == 2:
                last = cluster.holder()
                cluster.stop(str(next(n for n in holders if n != last)))
                wait_until("the hand-over", lambda: cluster.command(
                    last, "hand-over").returncode == 0 and cluster.holder() not in holders)
                cluster.start(next(n for n in holders if n != last))
                wait_until("the nodes", lambda: all(cluster.ready(n) for n in range(3)))


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))] if values else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--granary", required=True)
    parser.add_argument("--secantus", required=True)
    parser.add_argument("--dir", required=True)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seconds", type=int, default=10**9)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--namespaces", action="store_true")
    parser.add_argument("--tls", action="store_true")
    parser.add_argument("--nginx", action="store_true")
    options = parser.parse_args()
    rounds = options.rounds or (sum(COUNTS) if options.full else len(FAULTS))
    begin = now()
    random.seed(options.seed)
    cluster = Cluster(options)
    try:
        start = (int(time.time()) // 60 - 20) * 60_000
        sender = batches(cluster)
        pair = [writes(cluster, start), writes(cluster, start)]
        sender.wait_for_more()
        wait_until("the members", lambda: settled(cluster))
        queries, outages, order = Queries(cluster, sender), {}, []
        for _ in range(rounds):
            if now() - begin > options.seconds:
                break
            if not order:
                order = random.sample(FAULTS, len(FAULTS))
                if options.full:
                    order = random.sample(FAULTS[:-2], sum(COUNTS[:-2]), counts=COUNTS[:-2])
                    order += FAULTS[-2:]
            fault = order.pop()
            outage = interrupt(cluster, sender, fault)
            outages.setdefault(fault, []).append(outage)
            print(f"{fault}: {outage:.1f} s without acknowledgements", flush=True)
            wait_until("the nodes", lambda: all(cluster.ready(node) for node in range(3)))
            for one in [sender, *pair]:
                one.wait_for_more()
            if fault in ("wiped disk", "struck and back"):
                wait_until("the members", lambda: settled(cluster))
        queries.stops = True
        queries.join(10)
        count, written = sender.end(), max(one.end() for one in pair)
        check_totals(cluster, {("numbered", "total"): count * SAMPLES,
                               ("written", "count"): written})
        wait_until("the disks", lambda: settled(cluster, True))
        takeovers = [outage for fault in TAKEOVERS for outage in outages.get(fault, [])]
        result = {
            "faults": {fault: len(found) for fault, found in outages.items()},
            "batches": count, "writes of each of two": written,
            "queries right": queries.right, "queries refused with a reason": queries.refused,
            "queries without a connection": queries.silent,
            "queries wrong": len(queries.wrong),
            "takeover p50": round(percentile(takeovers, 0.5), 1),
            "takeover p99": round(percentile(takeovers, 0.99), 1),
            "takeover max": round(max(takeovers, default=0), 1),
            "clean stop max": round(max(outages.get("clean stop", [0])), 1),
        }
        print(json.dumps(result, indent=1))
        if queries.wrong:
            raise SystemExit(f"wrong answers: {queries.wrong[:5]}")
    finally:
        cluster.close()


if __name__ == "__main__":
    sys.exit(main())
