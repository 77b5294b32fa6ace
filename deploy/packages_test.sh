#!/bin/bash
# Installs, upgrades, removes and purges the packages in a fresh Debian root, with the binaries of
# `cargo build --workspace`. When that is not possible, exits with 77 and prints the reason.
set -euo pipefail
cd "$(dirname "$0")/.."

skip() { echo "SKIPPED: $*"; exit 77; }
fail() { echo "FAILED: $*" >&2; exit 1; }
[ "$(id -u)" = 0 ] || skip "root is needed to make a Debian root"
command -v debootstrap >/dev/null || skip "debootstrap is not installed"
cargo deb --version >/dev/null 2>&1 || skip "cargo-deb is not installed; cargo install cargo-deb --locked"

work=$(mktemp -d)
pid=
cleanup() {
    [ -z "$pid" ] || { kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null; } || true
    umount "$work/root/proc" 2>/dev/null || true
    rm -rf --one-file-system "$work"
}
trap cleanup EXIT

mirror=$(sed -n 's/^deb \([^ ]*\) .*/\1/p; s/^URIs: \([^ ]*\).*/\1/p' /etc/apt/sources.list \
    /etc/apt/sources.list.d/* 2>/dev/null | head -1 || true)
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
debootstrap --variant=minbase "$suite" "$work/root" "${mirror:-http://deb.debian.org/debian}" \
    >"$work/debootstrap.log" 2>&1 || { tail -5 "$work/debootstrap.log"; skip "debootstrap cannot reach Debian"; }
mkdir -p "$work/root/packages"
for program in granary granary-agent; do
    for version in 0.0.1 0.0.2; do
        cargo deb --no-build --no-strip --fast --locked --profile dev --multiarch none \
            -p "$program" --deb-version "$version" -o "$work/root/packages/$program-$version.deb" \
            >"$work/deb.log" 2>&1 || { cat "$work/deb.log"; fail "cannot pack $program"; }
    done
done
mount -t proc proc "$work/root/proc" || skip "/proc cannot be mounted"

inside() { chroot "$work/root" "$@"; }
dpkg_() { inside env DEBIAN_FRONTEND=noninteractive dpkg --force-confold "$@" >>"$work/dpkg.log" 2>&1 ||
    { tail -20 "$work/dpkg.log"; fail "dpkg $*"; }; }
is() { [ "$2" = "$3" ] || fail "$1: $2 instead of $3"; }
gone() { [ ! -e "$work/root/$1" ] && [ ! -L "$work/root/$1" ] || fail "$1 is still there"; }

check() { # package, its settings, a line to add to them
    local name=$1 settings=$2 line=$3
    dpkg_ -i "/packages/$name-0.0.1.deb"
    is "owner of $settings" "$(inside stat -c '%U:%G %a' "/etc/granary/$settings")" "root:$name 640"
    inside getent passwd "$name" >/dev/null || fail "no user $name"
    [ -e "$work/root/usr/lib/systemd/system/$name.service" ] ||
        [ -e "$work/root/lib/systemd/system/$name.service" ] || fail "no unit of $name"
    inside "$name" --version >/dev/null || fail "$name does not run"
    echo "$line" >>"$work/root/etc/granary/$settings"
    inside install -d -o "$name" -g "$name" "/var/lib/$name"
    echo data >"$work/root/var/lib/$name/kept"
    dpkg_ -i "/packages/$name-0.0.2.deb"
    is "version" "$(inside dpkg-query -Wf '${Version}' "$name")" 0.0.2
    tail -1 "$work/root/etc/granary/$settings" | grep -qxF "$line" || fail "an upgrade changed $settings"
    is "owner of $settings" "$(inside stat -c '%U:%G %a' "/etc/granary/$settings")" "root:$name 640"
    [ -e "$work/root/var/lib/$name/kept" ] || fail "an upgrade removed data"
}

removed() { # package, its settings
    dpkg_ -r "$1"
    gone "usr/bin/$1"
    [ -e "$work/root/etc/granary/$2" ] && [ -e "$work/root/var/lib/$1/kept" ] ||
        fail "a removal of $1 removed settings or data"
    dpkg_ -P "$1"
    gone "var/lib/$1"
    gone "etc/granary/$2"
    ! inside getent passwd "$1" >/dev/null || fail "the user $1 is still there"
}

check granary granary.toml "# mine"
check granary-agent agent.toml "# mine"

# Both programs run with the arguments of their units, as the packages' users; the agent's samples
# arrive.
port=$((20000 + RANDOM % 10000))
# Not with inside(): $! would be a subshell, which would receive the signals instead of the daemon.
chroot "$work/root" setpriv --reuid granary --regid granary --clear-groups granary serve \
    --config /etc/granary/granary.toml --data-dir /var/lib/granary --listen "127.0.0.1:$port" \
    2>"$work/serve.log" &
pid=$!
for _ in $(seq 100); do
    curl -fs "http://127.0.0.1:$port/readyz" >/dev/null && break
    kill -0 $pid 2>/dev/null || { cat "$work/serve.log"; fail "the daemon ended"; }
    sleep 0.2
done
sed -i "s|^url = .*|url = \"http://127.0.0.1:$port\"\ninterval = \"1s\"|" "$work/root/etc/granary/agent.toml"
inside setpriv --reuid granary-agent --regid granary-agent --clear-groups env \
    STATE_DIRECTORY=/var/lib/granary-agent granary-agent --config /etc/granary/agent.toml run --rounds 2 \
    2>"$work/agent.log" || { cat "$work/agent.log"; fail "the agent failed"; }
curl -fs "http://127.0.0.1:$port/api/v1/hosts" | grep -q '"hosts":\[{' || fail "no host arrived"
kill $pid
wait $pid || { tail -5 "$work/serve.log"; fail "the daemon did not stop cleanly"; }
pid=

removed granary-agent agent.toml
removed granary granary.toml
gone etc/granary
echo "packages are installed, upgraded, run, removed and purged"
