#!/bin/sh
# Builds granary, runs the daemon with an agent that samples this host, and stops both on Ctrl-C.
# Data lies in ./granary-data, or where GRANARY_DATA says.
set -eu
cd "$(dirname "$0")/.."
data=${GRANARY_DATA:-granary-data}
url=${GRANARY_URL:-http://127.0.0.1:7117}

cargo build --release --locked -p granary -p granary-agent-host

target/release/granary serve --data-dir "$data" --listen "${url#http://}" &
daemon=$!
agent=
stop() {
    trap - EXIT INT TERM
    [ -z "$agent" ] || kill "$agent" 2>/dev/null || true
    [ -z "$agent" ] || wait "$agent" 2>/dev/null || true
    kill "$daemon" 2>/dev/null || true
    wait "$daemon" 2>/dev/null || true
}
trap stop EXIT
trap 'exit 0' INT TERM

until curl -sf "$url/readyz" >/dev/null; do
    kill -0 "$daemon" 2>/dev/null || { echo "the daemon did not start; see its log above" >&2; exit 1; }
    sleep 0.2
done
target/release/granary-agent-host --url "$url" --spool-dir "$data/agent-spool" &
agent=$!

cat <<TEXT

Granary listens on $url and samples this host every 10 s. In another terminal:
  target/release/granary query series --url $url
  target/release/granary query chart --url $url --metric system_cpu_user --resolution 1m
  curl '$url/api/v1/chart?metric=system_cpu_user&resolution=1m&range=10m'
  curl $url/metrics
Ctrl-C stops both.

TEXT
wait "$daemon"
