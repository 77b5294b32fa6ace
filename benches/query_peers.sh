#!/usr/bin/env bash
# Queries of Granary, VictoriaMetrics and Prometheus side by side, over the same samples. Prints the
# median of 50 responses for each query, the CPU time of each, and the first response.
#
#   benches/query_peers.sh [history|fleet] [granary|victoria|prometheus ...]
#
# history: 1,000 series, a sample every 60 s, 30 days, queried after a restart. fleet: 1,000 hosts with
# 100 series each, a sample every 10 s, the last ten minutes, queried during ingest.
# Needs `cargo build --release`, python3, and Debian's victoria-metrics and prometheus.
set -euo pipefail
cd "$(dirname "$0")/.."
workload=history
case ${1:-} in history | fleet) workload=$1 && shift ;; esac
peers=("$@")
[ ${#peers[@]} -gt 0 ] || peers=(granary victoria prometheus)
granary=$PWD/target/release/granary
work=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; wait; rm -rf "$work"' EXIT

cat >"$work/prometheus.yml" <<'YML'
storage:
  tsdb:
    out_of_order_time_window: 40d
YML

start() {
    case $1 in
    granary) exec env GRANARY__TELEMETRY__INTERVAL= "$granary" serve --data-dir "$work/granary" --listen 127.0.0.1:7119 ;;
    victoria) exec victoria-metrics -storageDataPath "$work/victoria" -httpListenAddr 127.0.0.1:8429 \
        -retentionPeriod 5y -search.latencyOffset 0 ;;
    prometheus) exec prometheus --config.file "$work/prometheus.yml" --storage.tsdb.path "$work/prometheus" \
        --storage.tsdb.retention.time 5y --web.enable-remote-write-receiver \
        --web.listen-address 127.0.0.1:9099 ;;
    esac >"$work/$1.log" 2>&1 &
    pids+=($!)
    until curl -sf "$(url "$1")/metrics" >/dev/null 2>&1; do sleep 0.05; done
    [ "$1" != prometheus ] || until curl -sf "$(url "$1")/-/ready" >/dev/null 2>&1; do sleep 0.05; done
}

url() {
    case $1 in
    granary) echo http://127.0.0.1:7119 ;;
    victoria) echo http://127.0.0.1:8429 ;;
    prometheus) echo http://127.0.0.1:9099 ;;
    esac
}

stop() {
    kill -TERM "${pids[-1]}"
    wait "${pids[-1]}" || true
    unset 'pids[-1]'
}

# All peers use the same end: the last whole hour, or the last whole minute.
end=$(($(date +%s) / 3600 * 3600))
load=(--hosts 25 --metrics 40 --interval 60s --rounds 43200 --batches-per-request 100)
[ "$workload" = history ] || load=(--hosts 1000 --metrics 100 --interval 10s --rounds 60 --hosts-per-request 10 --batches-per-request 1)
for peer in "${peers[@]}"; do
    start "$peer"
    "$granary"-bench --url "$(url "$peer")" --protocol remote-write --connections 2 "${load[@]}" \
        --keep --json >"$work/$peer.json"
    if [ "$workload" = fleet ]; then
        end=$(($(date +%s) / 60 * 60))
    else
        stop
        start "$peer"
    fi
    python3 benches/query_peers.py "$workload" "$peer" "$(url "$peer")" "$end"
    stop
done
