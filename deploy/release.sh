#!/bin/sh
# Builds static binaries and Debian packages of the daemon and the agent, with their checksums.
#
#   deploy/release.sh [FOLDER]    the default FOLDER is target/release-files
#
# TARGET sets another target than x86_64-unknown-linux-musl; SKIP_BUILD=1 packs existing binaries.
set -eu
cd "$(dirname "$0")/.."
out=${1:-target/release-files}
target=${TARGET:-x86_64-unknown-linux-musl}

say() { printf 'release: %s\n' "$*" >&2; }
cargo deb --version >/dev/null 2>&1 || { say "cargo-deb is missing: cargo install cargo-deb --locked"; exit 1; }
if [ -z "${SKIP_BUILD:-}" ]; then
    case $target in
    *-musl)
        command -v musl-gcc >/dev/null || { say "musl-gcc is missing: apt-get install musl-tools"; exit 1; }
        rustc --print target-libdir --target "$target" 2>/dev/null | xargs -r test -d ||
            { say "the target is missing: rustup target add $target"; exit 1; }
        ;;
    esac
    [ -f src/web/dist/index.html ] ||
        { say "the page is not built: npm ci && npm run build in src/web"; exit 1; }
    # Links the C library statically on every target, so that the binary runs anywhere. Incremental
    # compilation would make the bytes depend on earlier builds.
    CARGO_INCREMENTAL=0 RUSTFLAGS="${RUSTFLAGS:-} -C target-feature=+crt-static" cargo build --release --locked \
        --target "$target" -p granary -p granary-agent
fi

mkdir -p "$out"
[ -z "$(ls -A "$out")" ] || { say "$out is not empty"; exit 1; }
# Makes the archives reproducible.
umask 022
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
LC_ALL=C
export SOURCE_DATE_EPOCH LC_ALL
version=$(cargo metadata --no-deps --format-version 1 --locked |
    sed -n 's/.*"name":"granary","version":"\([^"]*\)".*/\1/p')
for program in granary granary-agent; do
    binary=target/$target/release/$program
    if readelf -d "$binary" | grep -q NEEDED; then
        say "$binary is not static"
        exit 1
    fi
    folder=$program-$version-$target
    mkdir "$out/$folder"
    cp "$binary" LICENSE LICENSE-APACHE LICENSE-MIT CHANGELOG.md "$out/$folder/"
    cp "deploy/$program.service" "$out/$folder/"
    tar --sort=name --owner=0 --group=0 --mode=go-w,a+rX --mtime="@$SOURCE_DATE_EPOCH" -C "$out" \
        -cf - "$folder" | gzip -n >"$out/$folder.tar.gz"
    rm -r "${out:?}/$folder"
    cargo deb --no-build --locked --target "$target" -p "$program" --output "$out/" >/dev/null
done
(cd "$out" && sha256sum -- * >SHA256SUMS)
say "$(ls "$out" | wc -l) files in $out"
