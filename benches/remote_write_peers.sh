#!/usr/bin/env bash
# Granary and VictoriaMetrics side by side: the same remote-write bodies over two connections, each
# on fresh data, one after the other. Prints CPU seconds of the whole process, from start to an
# clean stop that writes everything, its peak memory, and samples per second.
#
#   benches/remote_write_peers.sh [fleet|history] [granary|victoria ...]
#
# fleet: 100,000 series, a sample every 10 s, 60 rounds. history: 1,000 series, a sample every 60 s,
# 30 days. Needs `cargo build --release` and Debian's victoria-metrics.
set -euo pipefail
cd "$(dirname "$0")/.."
workload=${1:-fleet}
shift || true
peers=("$@")
[ ${#peers[@]} -gt 0 ] || peers=(granary victoria)
granary=target/release/granary
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

case $workload in
fleet) load=(--hosts 1000 --metrics 100 --interval 10s --rounds 60 --hosts-per-request 10 --batches-per-request 1) ;;
history) load=(--hosts 10 --metrics 100 --interval 60s --rounds 43200 --hosts-per-request 1 --batches-per-request 100) ;;
*) echo "unknown workload $workload" >&2; exit 1 ;;
esac

measure() {
    local name=$1 port=$2
    shift 2
    python3 - "$work/$name.use" "$@" <<'PY' &
import os, resource, signal, subprocess, sys
out, command = sys.argv[1], sys.argv[2:]
child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=open(out + ".log", "w"))
signal.signal(signal.SIGTERM, lambda *_: child.send_signal(signal.SIGTERM))
while True:
    try:
        child.wait()
        break
    except InterruptedError:
        pass
use = resource.getrusage(resource.RUSAGE_CHILDREN)
open(out, "w").write(f"{use.ru_utime + use.ru_stime} {use.ru_maxrss / 1024}")
PY
    local pid=$!
    until curl -sf "http://127.0.0.1:$port/metrics" >/dev/null 2>&1; do sleep 0.05; done
    "$granary"-bench --url "http://127.0.0.1:$port" --protocol remote-write --connections 2 \
        "${load[@]}" --keep --json >"$work/$name.json"
    kill -TERM $pid
    wait $pid || true
    python3 - "$name" "$work/$name.json" "$work/$name.use" <<'PY'
import json, sys
name, report, use = sys.argv[1], json.load(open(sys.argv[2])), open(sys.argv[3]).read().split()
cpu, peak = float(use[0]), float(use[1])
samples = report["samples_accepted"]
print(f"{name:10} {samples/1e6:.1f} M samples, {report['samples_per_second']/1e6:.2f} M/s, "
      f"CPU {cpu/samples*1e6:.3f} s/M to the last write ({report['daemon_cpu_seconds_per_million_samples']:.3f} until the last answer), "
      f"ack p50 {report['ack_p50_ms']:.1f} ms p99 {report['ack_p99_ms']:.1f} ms, peak {peak:.0f} MiB")
PY
}

for peer in "${peers[@]}"; do
    case $peer in
    # Shells are disabled: those for the next hour are created in the second half of each hour, so
    # ten minutes of samples in ten seconds would include the cost of a whole hour of shells.
    granary) measure granary 7119 env GRANARY__TELEMETRY__INTERVAL= GRANARY__PREALLOCATION__ENABLED=false "$granary" serve --data-dir "$work/granary" --listen 127.0.0.1:7119 ;;
    victoria) measure victoria 8429 victoria-metrics -storageDataPath "$work/victoria" \
        -httpListenAddr 127.0.0.1:8429 -retentionPeriod 5y ;;
    esac
done
