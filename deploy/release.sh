#!/bin/sh
# Builds a release: archives, Debian and RPM packages of static binaries, a root file system for containers,
# the installer, a list of all components (CycloneDX), and checksums.
#
#   deploy/release.sh [FOLDER]    the default FOLDER is target/release-files
#
# TARGET sets another target than x86_64-unknown-linux-musl. BINARIES is a folder with existing
# binaries, which are packed instead; VERSION is another version for them. COMPRESSION is 1 (fast) to 9.
set -eu
cd "$(dirname "$0")/.."
out=${1:-target/release-files}
target=${TARGET:-x86_64-unknown-linux-musl}
binaries=${BINARIES:-target/$target/release}
programs="granary granary-agent"

fail() { printf 'release: %s\n' "$*" >&2; exit 1; }
need() { command -v "$1" >/dev/null || fail "$1 is missing: apt-get install $2"; }
need dpkg-deb dpkg
need rpmbuild rpm
need readelf binutils
need python3 python3
case $target in
x86_64-*) architecture=amd64 ;;
aarch64-*) architecture=arm64 ;;
*) fail "no packages for $target" ;;
esac
if [ -z "${BINARIES:-}" ]; then
    case $target in
    *-musl)
        need musl-gcc musl-tools
        rustc --print target-libdir --target "$target" 2>/dev/null | xargs -r test -d ||
            fail "the target is missing: rustup target add $target"
        ;;
    esac
    [ -f src/web/dist/index.html ] ||
        fail "the page is not built: npm ci && npm run build in src/web"
    # Links the C library statically on every target, so that the binary runs anywhere. Incremental
    # compilation would make the bytes depend on earlier builds.
    CARGO_INCREMENTAL=0 RUSTFLAGS="${RUSTFLAGS:-} -C target-feature=+crt-static" cargo build --release --locked \
        --target "$target" -p granary -p granary-agent
    for program in $programs; do
        if readelf -d "$binaries/$program" | grep -q NEEDED; then fail "$program is not static"; fi
    done
fi

mkdir -p "$out"
[ -z "$(ls -A "$out")" ] || fail "$out is not empty"
out=$(cd "$out" && pwd)
# Makes the archives reproducible.
umask 022
level=${COMPRESSION:-9}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
LC_ALL=C
export SOURCE_DATE_EPOCH LC_ALL
version=${VERSION:-$(cargo metadata --no-deps --format-version 1 --locked |
    sed -n 's/.*"name":"granary","version":"\([^"]*\)".*/\1/p')}
pack() { # folder, its content, owner
    tar --sort=name --owner="$3" --group="$3" --numeric-owner --mode=go-w,a+rX \
        --mtime="@$SOURCE_DATE_EPOCH" -C "$1" -cf - "$2"
}

for program in $programs; do
    name=$program-$version-$target
    folder=$out/$name
    mkdir -p "$folder/completions" "$folder/docs"
    strip -o "$folder/$program" "$binaries/$program"
    cp LICENSE LICENSE-APACHE LICENSE-MIT CHANGELOG.md "deploy/$program.service" "$folder/"
    case $program in
    granary) cp config/default.toml "$folder/granary.toml" && cp docs/*.md "$folder/docs/" ;;
    granary-agent)
        cp config/host.toml "$folder/agent.toml"
        cp config/agent.toml docs/agents.md agents/mongodb/METRICS.md "$folder/docs/"
        ;;
    esac
    "$binaries/$program" write-manual "$folder/completions"
    mv "$folder/completions/man" "$folder/man"
    pack "$out" "$name" 0 | gzip "-${level}n" >"$out/$name.tar.gz"
    deploy/deb/build.sh "$program" "$version" "$architecture" "$folder" "$out"
    deploy/rpm/build.sh "$program" "$version" "${target%%-*}" "$folder" "$out"
done

# The container: both programs, and a user that may write to the volume.
root=$out/root
mkdir -p "$root/usr/bin" "$root/etc/granary" "$root/tmp" "$root/var/lib/granary"
for program in $programs; do cp "$out/$program-$version-$target/$program" "$root/usr/bin/"; done
printf 'root:x:0:0:root:/:\ngranary:x:10001:10001::/var/lib/granary:\n' >"$root/etc/passwd"
printf 'root:x:0:\ngranary:x:10001:\n' >"$root/etc/group"
pack "$root" . 10001 | gzip "-${level}n" >"$out/granary-$version-$target-rootfs.tar.gz"
rm -r "$root"
for program in $programs; do rm -r "${out:?}/$program-$version-$target"; done

python3 deploy/sbom.py "$version" "$target" >"$out/granary-$version.cdx.json"
install -m 755 deploy/install.sh "$out/install.sh"
(cd "$out" && sha256sum -- * >SHA256SUMS)
printf 'release: %s files in %s\n' "$(ls "$out" | wc -l)" "$out" >&2
