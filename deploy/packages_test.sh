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
daemon_pid=
cleanup() {
    [ -z "$daemon_pid" ] || { kill "$daemon_pid" 2>/dev/null && wait "$daemon_pid" 2>/dev/null; } || true
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

in_root() { chroot "$work/root" "$@"; }
run_dpkg() { in_root env DEBIAN_FRONTEND=noninteractive dpkg --force-confold "$@" >>"$work/dpkg.log" 2>&1 ||
    { tail -20 "$work/dpkg.log"; fail "dpkg $*"; }; }
expect_equal() { [ "$2" = "$3" ] || fail "$1: $2 instead of $3"; }
expect_absent() { [ ! -e "$work/root/$1" ] && [ ! -L "$work/root/$1" ] || fail "$1 is still there"; }

check_installation() { # package, its settings, a line to add to them
    local name=$1 settings=$2 line=$3
    run_dpkg -i "/packages/$name-0.0.1.deb"
    expect_equal "owner of $settings" "$(in_root stat -c '%U:%G %a' "/etc/granary/$settings")" "root:$name 640"
    in_root getent passwd "$name" >/dev/null || fail "no user $name"
    [ -e "$work/root/usr/lib/systemd/system/$name.service" ] ||
        [ -e "$work/root/lib/systemd/system/$name.service" ] || fail "no unit of $name"
    in_root "$name" --version >/dev/null || fail "$name does not run"
    echo "$line" >>"$work/root/etc/granary/$settings"
    in_root install -d -o "$name" -g "$name" "/var/lib/$name"
    echo data >"$work/root/var/lib/$name/kept"
    run_dpkg -i "/packages/$name-0.0.2.deb"
    expect_equal "version" "$(in_root dpkg-query -Wf '${Version}' "$name")" 0.0.2
    tail -1 "$work/root/etc/granary/$settings" | grep -qxF "$line" || fail "an upgrade changed $settings"
    expect_equal "owner of $settings" "$(in_root stat -c '%U:%G %a' "/etc/granary/$settings")" "root:$name 640"
    [ -e "$work/root/var/lib/$name/kept" ] || fail "an upgrade removed data"
}

check_removal() { # package, its settings
    run_dpkg -r "$1"
    expect_absent "usr/bin/$1"
    [ -e "$work/root/etc/granary/$2" ] && [ -e "$work/root/var/lib/$1/kept" ] ||
        fail "a removal of $1 removed settings or data"
    run_dpkg -P "$1"
    expect_absent "var/lib/$1"
    expect_absent "etc/granary/$2"
    ! in_root getent passwd "$1" >/dev/null || fail "the user $1 is still there"
}

check_installation granary granary.toml "# mine"
check_installation granary-agent agent.toml "# mine"

# Both programs run with the arguments of their units, as the packages' users; the agent's samples
# arrive.
port=$((20000 + RANDOM % 10000))
# Not with in_root(): $! would be a subshell, which would receive the signals instead of the daemon.
chroot "$work/root" setpriv --reuid granary --regid granary --clear-groups granary serve \
    --config /etc/granary/granary.toml --data-dir /var/lib/granary --listen "127.0.0.1:$port" \
    2>"$work/serve.log" &
daemon_pid=$!
for _ in $(seq 100); do
    curl -fs "http://127.0.0.1:$port/readyz" >/dev/null && break
    kill -0 $daemon_pid 2>/dev/null || { cat "$work/serve.log"; fail "the daemon ended"; }
    sleep 0.2
done
sed -i "s|^url = .*|url = \"http://127.0.0.1:$port\"\ninterval = \"1s\"|" "$work/root/etc/granary/agent.toml"
in_root setpriv --reuid granary-agent --regid granary-agent --clear-groups env \
    STATE_DIRECTORY=/var/lib/granary-agent granary-agent --config /etc/granary/agent.toml run --rounds 2 \
    2>"$work/agent.log" || { cat "$work/agent.log"; fail "the agent failed"; }
curl -fs "http://127.0.0.1:$port/api/v1/hosts" | grep -q '"hosts":\[{' || fail "no host arrived"
kill $daemon_pid
wait $daemon_pid || { tail -5 "$work/serve.log"; fail "the daemon did not stop cleanly"; }
daemon_pid=

check_removal granary-agent agent.toml
check_removal granary granary.toml
expect_absent etc/granary
echo "packages are installed, upgraded, run, removed and purged"
