#!/bin/bash
# Builds releases with deploy/release.sh from existing binaries, and installs, upgrades, runs and removes
# them in a fresh Debian root: first the Debian packages, then the RPM packages with a database of their
# own, then the archives by deploy/install.sh, then the role
# of Ansible. When that is not possible, exits with 77 and prints the reason.
#
# BINARIES is the folder of the binaries (default: target/debug of `cargo build --workspace`).
set -euo pipefail
cd "$(dirname "$0")/.."

skip() { echo "SKIPPED: $*"; exit 77; }
fail() { echo "FAILED: $*" >&2; exit 1; }
[ "$(id -u)" = 0 ] || skip "root is needed to make a Debian root"
for tool in debootstrap rpmbuild; do
    command -v $tool >/dev/null || skip "$tool is not installed"
done
binaries=${BINARIES:-target/debug}
# Fast instead of small.
export COMPRESSION=1

work=$(mktemp -d)
daemon_pid=
agent_pid=
stop() { # process
    [ -z "$1" ] || { kill "$1" 2>/dev/null && wait "$1"; }
}
cleanup() {
    stop "$daemon_pid" || true
    stop "$agent_pid" || true
    umount "$work/root/proc" 2>/dev/null || true
    rm -rf --one-file-system "$work"
}
trap cleanup EXIT

mirror=$(sed -n 's/^deb \([^ ]*\) .*/\1/p; s/^URIs: \([^ ]*\).*/\1/p' /etc/apt/sources.list \
    /etc/apt/sources.list.d/* 2>/dev/null | head -1 || true)
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
debootstrap --variant=minbase --include=python3 "$suite" "$work/root" "${mirror:-http://deb.debian.org/debian}" \
    >"$work/debootstrap.log" 2>&1 || { tail -5 "$work/debootstrap.log"; skip "debootstrap cannot reach Debian"; }
for version in 0.0.1 0.0.2; do
    BINARIES=$binaries VERSION=$version deploy/release.sh "$work/root/release-$version" 2>"$work/release.log" ||
        { cat "$work/release.log"; fail "cannot build a release"; }
done
BINARIES=$binaries VERSION=0.0.2 deploy/release.sh "$work/again" 2>/dev/null
cmp "$work/again/SHA256SUMS" "$work/root/release-0.0.2/SHA256SUMS" || fail "two releases differ"
tar -tzf "$work/root/release-0.0.2/"granary-0.0.2-*-rootfs.tar.gz ./usr/bin/granary >/dev/null ||
    fail "the root file system of the container has no program"
mount -t proc proc "$work/root/proc" || skip "/proc cannot be mounted"

in_root() { chroot "$work/root" "$@"; }
run_dpkg() { in_root env DEBIAN_FRONTEND=noninteractive dpkg --force-confold "$@" >>"$work/dpkg.log" 2>&1 ||
    { tail -20 "$work/dpkg.log"; fail "dpkg $*"; }; }
expect_equal() { [ "$2" = "$3" ] || fail "$1: $2 instead of $3"; }
expect_absent() { [ ! -e "$work/root/$1" ] && [ ! -L "$work/root/$1" ] || fail "$1 is still there"; }
settings_of() { case $1 in granary) echo granary.toml ;; *) echo agent.toml ;; esac; }

check_settings() { # program
    local settings
    settings=$(settings_of "$1")
    expect_equal "owner of $settings" "$(in_root stat -c '%U:%G %a' "/etc/granary/$settings")" "root:$1 640"
    in_root getent passwd "$1" >/dev/null || fail "no user $1"
    in_root "$1" --version >/dev/null || fail "$1 does not run"
}

add_changes() { # program
    echo "# mine" >>"$work/root/etc/granary/$(settings_of "$1")"
    in_root install -d -o "$1" -g "$1" "/var/lib/$1"
    echo data >"$work/root/var/lib/$1/kept"
}

check_changes() { # program, action
    grep -qxF "# mine" "$work/root/etc/granary/$(settings_of "$1")" || fail "$2 changed the settings of $1"
    [ -e "$work/root/var/lib/$1/kept" ] || fail "$2 removed data of $1"
}

check_package() { # program
    run_dpkg -i "/release-0.0.1/$1_0.0.1_$(dpkg --print-architecture).deb"
    check_settings "$1"
    [ -e "$work/root/usr/lib/systemd/system/$1.service" ] || fail "no unit of $1"
    in_root gzip -dc "/usr/share/man/man1/$1.1.gz" | grep -q '^\.TH' || fail "no page of $1"
    in_root bash -n "/usr/share/bash-completion/completions/$1" || fail "invalid completions of $1"
    add_changes "$1"
    run_dpkg -i "/release-0.0.2/$1_0.0.2_$(dpkg --print-architecture).deb"
    expect_equal "version" "$(in_root dpkg-query -Wf '${Version}' "$1")" 0.0.2
    check_settings "$1"
    check_changes "$1" "an upgrade"
}

check_package_removal() { # program
    run_dpkg -r "$1"
    expect_absent "usr/bin/$1"
    check_changes "$1" "a removal"
    run_dpkg -P "$1"
    expect_absent "var/lib/$1"
    expect_absent "etc/granary/$(settings_of "$1")"
    ! in_root getent passwd "$1" >/dev/null || fail "the user $1 is still there"
}

# Both programs run with the arguments of their units, as their users; the host has a chart.
check_chart() {
    local port=$((20000 + RANDOM % 10000)) started=$SECONDS
    # Not with in_root(): $! would be a subshell, which would receive the signals instead of the daemon.
    chroot "$work/root" setpriv --reuid granary --regid granary --clear-groups granary serve \
        --config /etc/granary/granary.toml --data-dir /var/lib/granary --listen "127.0.0.1:$port" \
        2>"$work/serve.log" &
    daemon_pid=$!
    in_root granary ready --url "http://127.0.0.1:$port" --wait 30s >/dev/null ||
        { cat "$work/serve.log"; fail "the daemon is not ready"; }
    sed -i "/^interval = /d; s|^url = .*|url = \"http://127.0.0.1:$port\"\ninterval = \"1s\"|" "$work/root/etc/granary/agent.toml"
    chroot "$work/root" setpriv --reuid granary-agent --regid granary-agent --clear-groups env \
        STATE_DIRECTORY=/var/lib/granary-agent granary-agent --config /etc/granary/agent.toml \
        2>"$work/agent.log" &
    agent_pid=$!
    local chart="http://127.0.0.1:$port/api/v1/chart?metric=system_load_1m&range=10m&resolution=1m"
    for _ in $(seq 150); do
        curl -fs "$chart" | grep -q '"series":\[{' && break
        kill -0 $daemon_pid 2>/dev/null || { cat "$work/serve.log"; fail "the daemon ended"; }
        kill -0 $agent_pid 2>/dev/null || { cat "$work/agent.log"; fail "the agent ended"; }
        sleep 0.2
    done
    curl -fs "$chart" | grep -q '"series":\[{' ||
        { cat "$work/agent.log"; fail "no chart: $(curl -s "$chart")"; }
    curl -fs "http://127.0.0.1:$port/api/v1/hosts" | grep -q '"hosts":\[{' || fail "no host arrived"
    echo "the host's first chart: $((SECONDS - started)) s after the start of the daemon"
    stop $agent_pid || { tail -5 "$work/agent.log"; fail "the agent did not stop cleanly"; }
    agent_pid=
    stop $daemon_pid || { tail -5 "$work/serve.log"; fail "the daemon did not stop cleanly"; }
    daemon_pid=
}

for program in granary granary-agent; do check_package "$program"; done
check_chart
for program in granary-agent granary; do check_package_removal "$program"; done
expect_absent etc/granary
echo "packages are installed, upgraded, run, removed and purged"

# rpm runs the scripts of the packages in the root, which has useradd and getent from Debian's packages.
run_rpm() { rpm --root "$work/root" --dbpath /var/lib/rpm-test --nodeps --force-debian "$@" >"$work/rpm.log" 2>&1 ||
    { cat "$work/rpm.log"; fail "rpm $*"; }; }
rpm_of() { echo "$work/root/release-$2/$1-$2-1.$(uname -m).rpm"; }
check_rpm() { # program
    run_rpm -i "$(rpm_of "$1" 0.0.1)"
    check_settings "$1"
    [ -e "$work/root/usr/lib/systemd/system/$1.service" ] || fail "no unit of $1"
    in_root gzip -dc "/usr/share/man/man1/$1.1.gz" | grep -q '^\.TH' || fail "no page of $1"
    add_changes "$1"
    run_rpm -U "$(rpm_of "$1" 0.0.2)"
    expect_equal "version" "$(rpm --root "$work/root" --dbpath /var/lib/rpm-test -q "$1")" "$1-0.0.2-1.$(uname -m)"
    run_rpm -V "$1" --nomtime --noconfig
    check_settings "$1"
    check_changes "$1" "an upgrade"
    run_rpm -e "$1"
    expect_absent "usr/bin/$1"
    expect_absent "usr/lib/systemd/system/$1.service"
    [ -e "$work/root/var/lib/$1/kept" ] || fail "a removal removed data of $1"
    grep -qxF "# mine" "$work/root/etc/granary/$(settings_of "$1").rpmsave" || fail "a removal removed settings of $1"
    rm -r "$work/root/var/lib/$1" "$work/root/etc/granary/$(settings_of "$1").rpmsave"
    in_root userdel "$1"
}
for program in granary granary-agent; do check_rpm "$program"; done
echo "RPM packages are installed, upgraded and removed"

install_from() { # folder, arguments
    local folder=$1
    shift
    in_root env FROM="$folder" sh "$folder/install.sh" "$@" >"$work/install.log" 2>&1
}
started=$SECONDS
install_from /release-0.0.1 || { cat "$work/install.log"; fail "install.sh"; }
check_chart
echo "from install.sh to the host's first chart: $((SECONDS - started)) s"
for program in granary granary-agent; do
    check_settings "$program"
    add_changes "$program"
done
checksum() { in_root sha256sum /usr/local/bin/granary; }
before=$(checksum)
cp -r "$work/root/release-0.0.2" "$work/root/damaged"
printf x >>"$(echo "$work"/root/damaged/granary-agent-0.0.2-*-musl.tar.gz)"
! install_from /damaged || fail "a damaged archive was installed"
grep -q "is damaged or was changed" "$work/install.log" || { cat "$work/install.log"; fail "no reason"; }
expect_equal "program after a refused upgrade" "$(checksum)" "$before"
echo "unknown_key = 1" >>"$work/root/etc/granary/granary.toml"
! install_from /release-0.0.2 granary || fail "invalid settings were accepted"
grep -q unknown_key "$work/install.log" || { cat "$work/install.log"; fail "no reason"; }
sed -i '/unknown_key/d' "$work/root/etc/granary/granary.toml"
install_from /release-0.0.2 || { cat "$work/install.log"; fail "an upgrade"; }
check_chart
for program in granary granary-agent; do check_changes "$program" "an upgrade"; done
install_from /release-0.0.2 uninstall || { cat "$work/install.log"; fail "uninstall"; }
for program in granary granary-agent; do
    expect_absent "usr/local/bin/$program"
    check_changes "$program" "uninstall"
done
install_from /release-0.0.2 purge
[ -z "$(find "$work/root/usr/local" "$work/root/etc/granary" "$work/root/var/lib" -name '*granary*.1' -o \
    -path '*/lib/granary*' -o -name '*granary' -type f 2>/dev/null)" ] || fail "purge left files"
! in_root getent passwd granary >/dev/null || fail "the user granary is still there"
echo "archives are installed, refused, upgraded, run, removed and purged"
if command -v ansible-playbook >/dev/null; then
    deploy/ansible/test.sh "$work/root" "$work/root/release-0.0.1" "$work/root/release-0.0.2"
else
    echo "ansible: SKIPPED: ansible-playbook is not installed"
fi
