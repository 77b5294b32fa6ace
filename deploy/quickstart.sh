#!/bin/sh
# Builds Granary, runs the daemon with an agent that samples this host, and stops both on Ctrl-C.
# The data directory is ./granary-data or GRANARY_DATA; GRANARY_URL sets the address.
set -eu
cd "$(dirname "$0")/.."
data=${GRANARY_DATA:-granary-data}
url=${GRANARY_URL:-http://127.0.0.1:7117}
url=${url%/}
address=${url#http://}
binaries=$PWD/target/quickstart

command -v cargo >/dev/null || {
    echo "quickstart: cargo is missing; install Rust (https://rustup.rs) and run this again" >&2
    exit 1
}
if ! [ -x "$binaries/granary" ]; then
    echo "Building Granary once: about 4 minutes on two cores. Cargo shows the progress."
fi
# The daemon serves the page when Node.js is available to build it.
page=src/web/dist/index.html
has_new_node() {
    node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' 2>/dev/null
}
page_build=
if [ -f $page ] && [ -z "$(find src/web/src src/web/index.html src/web/*.json src/web/vite.config.ts -newer $page)" ]; then
    : # The page is up to date.
elif ! command -v npm >/dev/null || ! has_new_node; then
    echo "Building without the web page, which needs npm and Node.js 20.19 or newer. Install them and run this script again."
else
    # Builds the page while cargo builds the daemon and the agent.
    (cd src/web && npm ci --no-audit --no-fund --silent && exec npm run --silent build) &
    page_build=$!
    trap 'kill "$page_build" 2>/dev/null || true' EXIT
    trap 'exit 130' INT TERM
fi
cargo build --profile quickstart --locked -p granary -p granary-agent-host
if [ -n "$page_build" ] && ! wait "$page_build"; then
    echo "The web page is missing or old: its build failed; see the error above."
fi

"$binaries/granary" serve --data-dir "$data" --listen "$address" &
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

"$binaries/granary" ready --url "$url" --pid "$daemon" --wait 60s >/dev/null || {
    echo "quickstart: the daemon did not start; see its last log line above" >&2
    exit 1
}
"$binaries/granary-agent-host" --url "$url" --spool-dir "$data/agent-spool" &
agent=$!

cat <<TEXT

Granary listens on $url and samples this host every 10 s. Open this address in a browser, or
run in another terminal:
  export PATH="$binaries:\$PATH" GRANARY_URL=$url
  granary query series
  granary query chart --metric system_cpu_user --resolution 1m --range 10m
  granary query promql 'system_load_1m' --range 10m
Ctrl-C stops both.

TEXT
if [ -f "$data/first-admin" ]; then
    echo "Open this link once to become the first administrator:"
    echo "  $(cat "$data/first-admin")"
    echo
fi
wait "$daemon"
