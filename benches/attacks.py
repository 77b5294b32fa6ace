#!/usr/bin/env python3
"""Memory and response times of the daemon under hostile requests.

    benches/attacks.py target/release/granary [--seconds 30] [--only NAME[,NAME]] [--list]

For each attack a daemon on the defaults (with Graphite's ports) is started on an empty directory
and an honest agent sends batches while the attack runs. The output has the daemon's peak memory, the
response times of the honest agent's batches and of /healthz, the number of its samples that are
missing, and the daemon's counters and log. Attackers run at reduced priority, because on a small
machine they would occupy the cores, which a remote attacker cannot. Needs Python 3.9 and nothing else.
"""
import argparse, http.client, json, multiprocessing as mp, os, queue, re, signal, socket, struct
import subprocess, tempfile, time, urllib.parse, urllib.request, zlib
from remote_write import field, varint

PORT, GRAPHITE, PICKLE = 7390, 7391, 7392
HOST = "127.0.0.1"


# -- attacks -------------------------------------------------------------------------

def snappy_repeat(unit, times):
    """Returns a snappy block that repeats `unit`: a literal, then copies."""
    out = [varint(len(unit) * times)]
    literal = unit * max(1, 64 // len(unit))
    out.append(bytes([61 << 2]) + struct.pack("<H", len(literal) - 1) + literal)
    remaining = len(unit) * times - len(literal)
    offset = struct.pack("<H", len(literal) - len(literal) % len(unit))
    full_copies, rest = divmod(remaining, 64)
    out.append((bytes([63 << 2 | 2]) + offset) * full_copies)
    if rest:
        out.append(bytes([(rest - 1) << 2 | 2]) + offset)
    return b"".join(out)


def gzip(pieces):
    compressor = zlib.compressobj(1, zlib.DEFLATED, 31)
    return b"".join([compressor.compress(piece) for piece in pieces]) + compressor.flush()


def request(method, path, headers, body=b""):
    lines = [f"{method} {path} HTTP/1.1", f"Host: {HOST}:{PORT}", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def connect(port=PORT, timeout=60.0):
    return socket.create_connection((HOST, port), timeout=timeout)


def send_repeatedly(message, until, tally):
    """Sends a request repeatedly on one connection and counts the statuses."""
    while time.time() < until:
        try:
            connection = connect()
            while time.time() < until:
                connection.sendall(message)
                answer = http.client.HTTPResponse(connection)
                answer.begin()
                answer.read()
                tally(answer.status)
                if answer.will_close:
                    break
        except (OSError, http.client.HTTPException) as error:
            tally(type(error).__name__)


def repeat_post(path, headers, body):
    message = request("POST", path, headers, body)
    return lambda number, until, tally: send_repeatedly(message, until, tally)


def repeat_gets(paths):
    def run(number, until, tally):
        send_repeatedly(request("GET", paths[number % len(paths)], {}), until, tally)
    return run


def repeat_form(path, text):
    return repeat_post(path, {"Content-Type": "application/x-www-form-urlencoded"}, text.encode())


def pipelined(number, until, tally):
    message = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 4000
    sockets = []
    while time.time() < until:
        while len(sockets) < 40:
            try:
                connection = connect(timeout=5)
                connection.setblocking(False)
                sockets.append([connection, 0])
                tally("connections")
            except OSError:
                break
        for pair in list(sockets):
            try:
                pair[1] += pair[0].send(message[pair[1] % len(message):][:65536])
            except BlockingIOError:
                pass
            except OSError:
                sockets.remove(pair)
                tally("closed")
        time.sleep(0.02)


def garbage(number, until, tally):
    while time.time() < until:
        try:
            with connect(timeout=5) as connection:
                connection.sendall(os.urandom(200) + b"\r\n\r\n")
                connection.recv(1000)
                tally("sent")
        except OSError as error:
            tally(type(error).__name__)


def datagrams(number, until, tally):
    sender, first_time = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), int(time.time()) - 30
    sent = 0
    while time.time() < until:
        for _ in range(1000):
            sender.sendto(b"burst%d.%d %d %d\n" % (number, sent % 1000, sent, first_time + sent // 100_000), (HOST, GRAPHITE))
            sent += 1
        time.sleep(0.02)
    tally("datagrams", sent)


def silent_connections(number, until, tally):
    held = []
    while time.time() < until:
        try:
            if len(held) < 600:
                held.append(connect(GRAPHITE, 5))
                tally("connections")
                continue
        except OSError as error:
            tally(type(error).__name__)
        time.sleep(0.2)


def forged_senders(number, until, tally):
    """Sends batches with invented senders, epochs and numbers far ahead, also under the honest agent's name."""
    far_number, attempt = 2**63 - 10, 0
    while time.time() < until:
        attempt += 1
        batch = {"agent": f"invented-{number}-{attempt}", "epoch": 1, "seq": 1, "samples": []}
        if attempt % 3 == 0:
            batch = {"agent": "honest", "epoch": far_number + attempt % 5, "seq": 1, "samples": []}
        if attempt % 3 == 1:
            batch = {"agent": "honest", "epoch": 1, "seq": 2**62, "samples": [{"metric": "x", "value": 1}]}
        try:
            with connect() as connection:
                connection.sendall(request("POST", "/api/v1/ingest", JSON, json.dumps(batch).encode()))
                answer = http.client.HTTPResponse(connection)
                answer.begin()
                tally(answer.status)
        except (OSError, http.client.HTTPException) as error:
            tally(type(error).__name__)


def slow_readers(number, until, tally):
    """Starts clients that read one byte per second of a large response."""
    path = "/api/v1/query?query=" + "%7B__name__%3D~%22.%2B%22%7D"
    held = []
    while time.time() < until:
        while len(held) < 8:
            try:
                connection = socket.socket()
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
                connection.settimeout(5)
                connection.connect((HOST, PORT))
                connection.sendall(request("GET", path, {}))
                held.append(connection)
                tally("queries")
            except OSError:
                break
        for connection in list(held):
            try:
                if not connection.recv(1):
                    raise OSError
            except TimeoutError:
                pass
            except OSError:
                held.remove(connection)
                tally("closed")
        time.sleep(1)


def cross_site(number, until, tally):
    messages = [
        request("POST", "/api/v1/admin/series/delete", {"Origin": "http://evil.example", **JSON}, b'{"metric":"honest_0"}'),
        request("POST", "/api/v1/admin/senders/remove", {"Origin": "http://evil.example", **JSON}, b"{}"),
        request("POST", "/api/v1/admin/snapshot", {"Origin": "null"}),
        request("POST", "/api/v1/ingest", {"Content-Type": "text/plain"}, b"{}"),
        request("GET", "/api/v1/series", {}).replace(b"Host: 127.0.0.1", b"Host: evil.example"),
    ]
    send_repeatedly(messages[number % len(messages)], until, tally)


JSON = {"Content-Type": "application/json"}
PROTO = {"Content-Type": "application/x-protobuf"}
MIB = 1 << 20


def otlp_histogram():
    points = b"\x0a\x00" * (15 * MIB)
    metric = field(1, b"h") + field(9, points + b"\x10\x02")
    return field(1, field(2, field(2, metric)))


def line_fields():
    return gzip([b"m "] + [b"a=1," * 65536] * 120 + [b"a=1 1\n"])


def pickled_lists():
    """Returns a pickled list that repeats one path through the memo."""
    inner = b"(lp0\n" + b"(S'%s'\np1\n" % (b"a" * 60000) + b"(I1\nF1.0\nttp2\na" + b"g2\na" * 200_000 + b"."
    return struct.pack(">I", len(inner)) + inner


def pickles(number, until, tally):
    message = pickled_lists()
    while time.time() < until:
        try:
            with connect(PICKLE, 10) as connection:
                connection.sendall(message)
                connection.shutdown(socket.SHUT_WR)
                connection.recv(1)
                tally("sent")
        except OSError as error:
            tally(type(error).__name__)


HEAVY = [
    "/api/v1/query?query=" + "%2B(m".join([""] * 128)[3:].replace("%2B(", "%2B(") + ")" * 127,
    "/api/v1/query?query=quantile_over_time(.5,m%5B5y%5D)",
    "/api/v1/query?query=count(count_over_time(m%5B1d:1s%5D))",
    "/api/v1/query_range?query=sum(rate(c%5B5m%5D))&start=0&end=1000000&step=100",
    "/api/v1/query?query=count(label_replace(m,'x','" + "$1$1$1$1$1$1$1$1" * 60 + "','i','(.*)'))",
    "/api/v1/query?query=" + "%20or%20".join(f"m%7Bi=~%22(a%7Cb%7Cc)%7B1,200%7D{i}%22%7D" for i in range(90)),
]
ROOTS = {"collection": "1m", "metric": "m", "range": "1d"}


def pipeline(stages):
    return repeat_post("/api/v1/aggregate", JSON, json.dumps({**ROOTS, "pipeline": stages}).encode())


# The number of processes and the function of each attack; attacks on memory use several processes.
ATTACKS = {
    "8 pipelined requests": (4, lambda: pipelined),
    "9 repeated selectors": (4, lambda: repeat_form("/api/v1/series", "&".join(["match[]=m"] * 20_000))),
    "10 requests of other sites": (5, lambda: cross_site),
    "11 snapshots": (8, lambda: repeat_post("/api/v1/admin/snapshot", JSON, b"")),
    "12 datagrams": (2, lambda: datagrams),
    "12 silent connections": (2, lambda: silent_connections),
    "13 forged senders": (4, lambda: forged_senders),
    "14 pipelines of roots": (8, lambda: pipeline([{"$addFields": {f"a{i}": "$$ROOT"}} for i in range(20)])),
    "16 garbage": (4, lambda: garbage),
    "17 bombs": (60, lambda: repeat_post("/api/v1/ingest", {**JSON, "Content-Encoding": "gzip"}, gzip([b" " * MIB] * 32))),
    "19 otlp points": (16, lambda: repeat_post("/v1/metrics", {**PROTO, "Content-Encoding": "gzip"}, gzip([otlp_histogram()]))),
    "19 remote write series": (16, lambda: repeat_post("/api/v1/write", {**PROTO, "Content-Encoding": "snappy"}, snappy_repeat(b"\x0a\x00", 16 * MIB - 64))),
    "19 forms": (16, lambda: repeat_form("/api/v1/query", "query=m&" + "a=b&" * 2_000_000)),
    "20 a name of 30 MiB": (8, lambda: repeat_post("/api/v1/write", {**PROTO, "Content-Encoding": "snappy"}, snappy_of_name())),
    "21 fields": (8, lambda: repeat_post("/write", {"Content-Encoding": "gzip"}, line_fields())),
    "21 pickles": (4, lambda: pickles),
    "22 lists of roots": (8, lambda: pipeline([{"$project": {"a": ["$$ROOT"] * 7000}}])),
    "22 expressions": (12, lambda: repeat_gets(HEAVY)),
    "23 slow readers": (4, lambda: slow_readers),
    "24 templates that double": (4, lambda: check_rules([DOUBLING])),
    "24 templates of patterns": (4, lambda: check_rules([PATTERNS, PATTERNS])),
    "24 checks by links": (4, lambda: rule_links),
    "25 tails of other sites": (18, lambda: tails),
    "26 own senders": (4, lambda: own_senders),
    "27 large silences": (4, lambda: lambda number, until, tally: silences(4000, number, until, tally)),
    "27 many silences": (4, lambda: lambda number, until, tally: silences(10, number, until, tally)),
}


DOUBLING = '{{ $x := "aaaaaaaaaa" }}{{ range 40 }}{{ $x = printf "%s%s" $x $x }}{{ end }}'
PATTERNS = '{{ range 4000 }}{{ if match "(\\\\pL{1,5}){1,3}" "x" }}{{ end }}{{ end }}'


def rules_form(templates):
    annotations = {f"a{number}": text for number, text in enumerate(templates)}
    rule = {"alert": "A", "expr": "up == 0", "annotations": annotations}
    return urllib.parse.urlencode({"rules": json.dumps({"groups": [{"name": "g", "rules": [rule]}]})})


def check_rules(templates):
    return repeat_form("/api/v1/rules/check", rules_form(templates))


def rule_links(number, until, tally):
    send_repeatedly(request("GET", "/api/v1/rules/check?" + rules_form([DOUBLING, PATTERNS]), {}), until, tally)


def tails(number, until, tally):
    foreign = [{"Sec-Fetch-Site": "cross-site"}, {"Origin": "http://evil.example"}][number % 2]
    send_repeatedly(request("GET", "/api/v1/tail?metric=m&resolution=1m", foreign), until, tally)


def own_senders(number, until, tally):
    """Sends later epochs under the current and former names of the daemon's own senders."""
    names = ["granary:hosts", "granary:rules", "granary:self", "hosts"]
    batch = {"agent": names[number % 4], "seq": 1, "samples": [{"metric": "x", "value": 1}]}
    while time.time() < until:
        body = json.dumps({**batch, "epoch": int(time.time() * 1000)}).encode()
        send_repeatedly(request("POST", "/api/v1/ingest", JSON, body), min(until, time.time() + 0.2), tally)


def silences(comment_bytes, number, until, tally):
    """Creates and expires silences as fast as possible."""
    while time.time() < until:
        connection = http.client.HTTPConnection(HOST, PORT, timeout=30)
        try:
            now = time.time()
            rfc3339_in = lambda seconds: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now + seconds))
            matchers = [{"name": f"l{i}", "value": "v" * (comment_bytes // 2), "isRegex": False, "isEqual": True}
                        for i in range(20)]
            body = {"matchers": matchers, "startsAt": rfc3339_in(0), "endsAt": rfc3339_in(3600), "createdBy": "x",
                    "comment": "c" * comment_bytes}
            connection.request("POST", "/api/v2/silences", json.dumps(body), JSON)
            answer = connection.getresponse()
            text = answer.read()
            tally(answer.status)
            if answer.status == 200:
                connection.request("DELETE", "/api/v2/silence/" + json.loads(text)["silenceID"], headers=JSON)
                connection.getresponse().read()
        except (OSError, http.client.HTTPException) as error:
            tally(type(error).__name__)
        finally:
            connection.close()


def snappy_of_name():
    """Returns metadata with a family name of 30 MiB: the start as a literal, the name as copies."""
    size = 30 * MIB
    inner_head = b"\x08\x01" + varint(2 << 3 | 2) + varint(size)
    head = varint(3 << 3 | 2) + varint(len(inner_head) + size) + inner_head
    literal = head + b"n" * 64
    remaining = size - 64
    out = varint(len(head) + size) + bytes([61 << 2]) + struct.pack("<H", len(literal) - 1) + literal
    out += (bytes([63 << 2 | 2]) + b"\x01\x00") * (remaining // 64)
    if remaining % 64:
        out += bytes([(remaining % 64 - 1) << 2 | 2]) + b"\x01\x00"
    return out


# -- honest clients -----------------------------------------------------------------------------

SERIES = 100


def run_honest_agent(until, out):
    """Runs an agent that delivers a batch every 50 ms and retries until the status is 200."""
    epoch, seq, times, sent, retries = int(time.time() * 1000), 0, [], 0, 0
    connection = None
    while time.time() < until:
        seq += 1
        now_ms = int(time.time() * 1000)
        samples = [{"metric": f"honest_{i}", "kind": "delta", "time": now_ms, "value": 1} for i in range(SERIES)]
        body = json.dumps({"agent": "honest", "epoch": epoch, "seq": seq, "samples": samples}).encode()
        start = time.time()
        while True:
            try:
                connection = connection or http.client.HTTPConnection(HOST, PORT, timeout=30)
                connection.request("POST", "/api/v1/ingest", body, JSON)
                answer = connection.getresponse()
                answer.read()
                if answer.status == 200:
                    break
                retries += 1
                time.sleep(0.05)
            except (OSError, http.client.HTTPException):
                retries, connection = retries + 1, None
                time.sleep(0.05)
            if time.time() > until + 60:
                break
        times.append(time.time() - start)
        sent += SERIES
        time.sleep(max(0.0, 0.05 - (time.time() - start)))
    out.put(("ingest", times, sent, retries))


def poll_health(until, out):
    times, failed = [], 0
    while time.time() < until:
        start = time.time()
        try:
            with connect(timeout=30) as connection:
                connection.sendall(request("GET", "/healthz", {"Connection": "close"}))
                if b" 200 " not in connection.recv(1000):
                    failed += 1
        except OSError:
            failed += 1
        times.append(time.time() - start)
        time.sleep(0.05)
    out.put(("health", times, len(times), failed))


def run_attacker(attack, number, until, out):
    os.nice(10)
    counts = {}

    def tally(key, count=1):
        counts[str(key)] = counts.get(str(key), 0) + count
    attack(number, until, tally)
    out.put(("attack", counts, 0, 0))


# -- one attack ----------------------------------------------------------------------------------

def ask(path):
    with urllib.request.urlopen(f"http://{HOST}:{PORT}{path}", timeout=60) as answer:
        return answer.read().decode()


def counters():
    values = {}
    for line in ask("/metrics").splitlines():
        if line.startswith("granary_") and not re.search(r"_bucket|_seconds|_sum|_count|_bytes", line):
            name, value = line.rsplit(" ", 1)
            values[name[8:]] = float(value)
    return values


def stored_batches():
    rows = json.loads(ask("/api/v1/chart?metric=honest_0&range=1h&resolution=1m&display=total"))
    return sum(point[1] or 0 for line in rows["series"] for point in line["points"])


def seed_series(count):
    """Writes the series `m` and `c`, which the queries read."""
    now_ms = int(time.time() * 1000)
    for first in range(0, count, 5000):
        samples = [{"metric": "m", "tags": {"i": str(i)}, "time": now_ms, "value": i} for i in range(first, first + 5000)]
        connection = http.client.HTTPConnection(HOST, PORT, timeout=60)
        connection.request("POST", "/api/v1/ingest", json.dumps({"agent": "seed", "samples": samples}), JSON)
        assert connection.getresponse().status == 200


def memory(pid):
    return {line.split()[0][:-1]: int(line.split()[1]) // 1024
            for line in open(f"/proc/{pid}/status") if line.startswith(("VmHWM", "VmRSS"))}


def percentile(times, part):
    times = sorted(times)
    return times[min(len(times) - 1, int(len(times) * part))] * 1000


def run_attack(binary, name, seconds):
    process_count, make_attack = ATTACKS[name]
    attack = make_attack()
    with tempfile.TemporaryDirectory() as folder:
        settings = os.path.join(folder, "granary.toml")
        with open(settings, "w") as file:
            file.write(f'[graphite]\nlisten=["{HOST}:{GRAPHITE}","pickle://{HOST}:{PICKLE}"]\n')
        log = open(os.path.join(folder, "log"), "w+")
        daemon = subprocess.Popen([binary, "serve", "--config", settings, "--data-dir", folder + "/data",
                                   "--listen", f"{HOST}:{PORT}"], stdout=log, stderr=log)
        try:
            subprocess.run([binary, "ready", "--url", f"http://{HOST}:{PORT}", "--pid", str(daemon.pid), "--wait", "30s"],
                           check=True, stdout=subprocess.DEVNULL)
            seed_series(20_000)
            before, memory_before = counters(), memory(daemon.pid)["VmRSS"]
            out, until = mp.Queue(), time.time() + seconds
            processes = [mp.Process(target=run_honest_agent, args=(until, out)), mp.Process(target=poll_health, args=(until, out))]
            processes += [mp.Process(target=run_attacker, args=(attack, number, until, out)) for number in range(process_count)]
            for process in processes:
                process.start()
            results, attack_counts = {}, {}
            deadline = until + 90
            for _ in processes:
                try:
                    kind, data, count, other = out.get(timeout=max(0.1, deadline - time.time()))
                except queue.Empty:
                    break
                if kind == "attack":
                    for key, value in data.items():
                        attack_counts[key] = attack_counts.get(key, 0) + value
                else:
                    results[kind] = (data, count, other)
                if len(results) == 2:
                    deadline = min(deadline, time.time() + 10)
            for process in processes:
                process.terminate()
            after, peak_memory = counters(), memory(daemon.pid)["VmHWM"]
            ingest, health = results["ingest"], results["health"]
            stored = stored_batches()
            changed = {key: int(value - before.get(key, 0)) for key, value in after.items()
                       if value != before.get(key, 0) and re.search(r"refus|drop|limit|busy|idle|clos|left|panic|damage|too|graphite", key)}
            daemon.send_signal(signal.SIGTERM)
            code = daemon.wait(60)
            log.seek(0)
            lines = log.read().splitlines()
            warnings = [line for line in lines if " WARN " in line or "ERROR" in line]
            print(f"{name:28} {memory_before:5} {peak_memory:6}  {percentile(ingest[0], .5):7.1f} {percentile(ingest[0], .99):8.1f}"
                  f" {percentile(health[0], .99):8.1f} {health[2]:4}  {'all' if stored == ingest[1] // SERIES else f'{stored} of {ingest[1] // SERIES}'}"
                  f" ({len(ingest[0])} batches, {ingest[2]} sent again), exit {code}")
            print(f"    attack: {json.dumps(attack_counts)}")
            print(f"    counted: {json.dumps(changed)}")
            print(f"    logged: {len(lines)} lines, {len(warnings)} of them warnings or errors", flush=True)
            for line in warnings[:2]:
                print("      " + re.sub(r"\x1b\[[0-9;]*m", "", line)[:180])
        finally:
            daemon.kill()
            daemon.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--only", help="prefixes of the attacks' names, separated by commas")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    wanted = [name for name in ATTACKS
              if not options.only or any(name.startswith(part) for part in options.only.split(","))]
    if options.list:
        print("\n".join(wanted))
        return
    print(f"{'attack':28} {'MiB':>5} {'most':>6}  {'ingest':>7} {'p99 ms':>8} {'health':>8} fail  the honest agent's samples")
    for name in wanted:
        run_attack(options.binary, name, options.seconds)


if __name__ == "__main__":
    main()
