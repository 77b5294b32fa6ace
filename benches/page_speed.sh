#!/usr/bin/env bash
# Measures the page in Chromium, from a release build, compared with Prometheus' page from Debian
# (apt-get install chromium prometheus) with the same samples: first chart, zoom, frames while the
# cursor moves, a fleet of 5,000 hosts, bytes.
#
#   benches/page_speed.sh           builds first
#   GRANARY_BIN=FOLDER benches/page_speed.sh
set -euo pipefail
cd "$(dirname "$0")/../src/web"
if [ -z "${GRANARY_BIN:-}" ]; then
    npm ci --no-audit --no-fund --silent
    npm run --silent build
    cargo build --release --workspace --locked
    export GRANARY_BIN=$PWD/../../target/release
fi
npx playwright test -c playwright.by-hand.config.ts speed
