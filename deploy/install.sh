#!/bin/sh
# Installs, upgrades or removes Granary on a Linux host, with or without systemd.
#
#   install.sh [granary] [granary-agent]      install or upgrade these programs (default: both)
#   install.sh uninstall [PROGRAM...]         remove them; settings and data stay
#   install.sh purge [PROGRAM...]             remove them with settings, data and users
#
# FROM is a folder or an https:// address with the files of a release (default: the folder of this
# script). Every file is checked against SHA256SUMS there. DAEMON is the address of the daemon for a
# new agent (default: http://127.0.0.1:7117). Existing settings and data are never changed.
set -eu
umask 022
from=${FROM:-$(cd "$(dirname "$0")" && pwd)}
bin=/usr/local/bin
units=/etc/systemd/system
share=/usr/local/share

say() { printf 'install: %s\n' "$*"; }
fail() { printf 'install: %s\n' "$*" >&2; exit 1; }
has_systemd() { [ -d /run/systemd/system ] && command -v systemctl >/dev/null; }
settings_of() { case $1 in granary) echo granary.toml ;; *) echo agent.toml ;; esac; }

action=install
case ${1:-} in
uninstall | purge) action=$1 && shift ;;
-h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" && exit ;;
esac
[ $# -gt 0 ] || set -- granary granary-agent
for program in "$@"; do
    case $program in
    granary | granary-agent) ;;
    *) fail "unknown program $program; see --help" ;;
    esac
done
[ "$(uname -s)" = Linux ] || fail "Granary runs on Linux only"
case ${DAEMON:-} in *[\"\|\\\&]*) fail "DAEMON contains characters that an address cannot" ;; esac
[ "$(id -u)" = 0 ] || fail "run this as root, for example with sudo"

remove() { # program
    [ ! -e "/usr/bin/$1" ] || fail "$1 was installed by a package; remove it with apt or dpkg"
    if has_systemd; then systemctl disable --now "$1.service" >/dev/null 2>&1 || true; fi
    rm -f "$bin/$1" "$bin/.$1.old" "$bin/.$1.new" "$units/$1.service" "$share/granary/$1.service" "$share/granary/$1.sha256" \
        "$share/bash-completion/completions/$1" "$share/zsh/site-functions/_$1" "$share/fish/vendor_completions.d/$1.fish"
    for page in "$share/man/man1/$1.1" "$share/man/man1/$1-"*.1; do
        # The pages of granary-agent begin with the name of granary.
        case $1:$page in granary:*/granary-agent*) ;; *) rm -f "$page" ;; esac
    done
    rmdir "$share/granary" 2>/dev/null || true
    if has_systemd; then systemctl daemon-reload; fi
    if [ "$action" = purge ]; then
        rm -rf --one-file-system "/var/lib/$1" "/var/lib/private/$1" "/etc/granary/$(settings_of "$1")"
        rmdir /etc/granary 2>/dev/null || true
        if getent passwd "$1" >/dev/null; then userdel "$1" || say "the user $1 stays: it has processes"; fi
    fi
    say "$1 is removed"
}
if [ "$action" != install ]; then
    for program in "$@"; do remove "$program"; done
    exit
fi

for tool in tar gzip sha256sum sed install useradd getent; do
    command -v $tool >/dev/null || fail "the program $tool is missing"
done
case $(uname -m) in
x86_64) target=x86_64-unknown-linux-musl ;;
aarch64) target=aarch64-unknown-linux-musl ;;
*) fail "there is no release for $(uname -m); build from source" ;;
esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fetch() { # file
    case $from in
    https://*)
        command -v curl >/dev/null || fail "the program curl is missing"
        curl --proto '=https' --tlsv1.2 -fsSL --max-filesize 500000000 -o "$work/$1" "$from/$1" ||
            fail "cannot load $from/$1"
        ;;
    *://*) fail "FROM must be a folder or an https:// address" ;;
    *) cp "$from/$1" "$work/$1" 2>/dev/null || fail "cannot read $from/$1; set FROM" ;;
    esac
}

unpack() { # program; sets folder
    archive=$(sed -n "s/^[0-9a-f]\{64\}  \($1-[0-9][^ /]*-$target\.tar\.gz\)$/\1/p" "$work/SHA256SUMS")
    [ -n "$archive" ] || fail "SHA256SUMS of $from has no $1 for $target"
    [ "$(printf '%s\n' "$archive" | wc -l)" = 1 ] || fail "SHA256SUMS of $from has several versions of $1"
    fetch "$archive"
    (cd "$work" && grep -F "  $archive" SHA256SUMS | sha256sum --check --status) ||
        fail "$archive is damaged or was changed: its checksum differs from SHA256SUMS"
    tar -xzf "$work/$archive" -C "$work"
    folder=$work/${archive%.tar.gz}
    "$folder/$1" --version >/dev/null || fail "$1 does not run on this host; where /tmp is mounted with noexec, set TMPDIR to another folder"
}

check_settings() { # program; a new version must accept the settings before it replaces the old one
    settings=/etc/granary/$(settings_of "$1")
    if [ "$1" = granary ] && [ -e "$settings" ]; then
        "$folder/granary" check-config --config "$settings" >"$work/check.log" 2>&1 ||
            { cat "$work/check.log" >&2; fail "the new version refuses $settings; nothing was changed"; }
    fi
}

put() { # mode, folder, files
    mode=$1 target_folder=$2
    shift 2
    install -d -m 755 "$target_folder" && install -m "$mode" -- "$@" "$target_folder/"
}

place() { # program
    if ! getent passwd "$1" >/dev/null; then
        shell=/usr/sbin/nologin
        [ -x $shell ] || shell=/sbin/nologin
        useradd --system --user-group --no-create-home --home-dir "/var/lib/$1" --shell $shell "$1"
    fi
    settings=$(settings_of "$1")
    install -d -m 755 "$bin" /etc/granary
    if [ ! -e "/etc/granary/$settings" ]; then
        install -m 640 -o root -g "$1" "$folder/$settings" "/etc/granary/$settings"
        if [ "$1" = granary-agent ] && [ -n "${DAEMON:-}" ]; then
            sed -i "s|^url = .*|url = \"$DAEMON\"|" "/etc/granary/$settings"
        fi
    fi
    # The old program stays for a return, and the new one replaces it at once.
    if [ -e "$bin/$1" ]; then cp -p "$bin/$1" "$bin/.$1.old"; fi
    if ! install -m 755 "$folder/$1" "$bin/.$1.new"; then
        rm -f "$bin/.$1.new"
        fail "cannot write into $bin; the old program stays"
    fi
    mv "$bin/.$1.new" "$bin/$1"
    put 644 "$share/man/man1" "$folder"/man/*.1
    put 644 "$share/bash-completion/completions" "$folder/completions/bash/$1"
    put 644 "$share/zsh/site-functions" "$folder/completions/zsh/_$1"
    put 644 "$share/fish/vendor_completions.d" "$folder/completions/fish/$1.fish"
    if has_systemd; then
        [ -e "$units/$1.service" ] && is_new= || is_new=1
        put 644 "$units" "$folder/$1.service"
        systemctl daemon-reload
        # A service that the operator disabled stays disabled.
        if [ -n "$is_new" ]; then systemctl enable "$1.service" >/dev/null 2>&1; fi
    else
        put 644 "$share/granary" "$folder/$1.service"
        # Otherwise systemd creates it.
        install -d -m 700 -o "$1" -g "$1" "/var/lib/$1"
    fi
}

start() { # program
    if ! has_systemd; then
        say "there is no systemd here: start $1 as in $share/granary/$1.service"
        return
    fi
    systemctl is-enabled --quiet "$1.service" || return 0
    if systemctl restart "$1.service" && is_running "$1"; then return; fi
    if [ -e "$bin/.$1.old" ]; then
        mv "$bin/.$1.old" "$bin/$1" && systemctl restart "$1.service" || true
        fail "the new $1 does not start, so the old one is back: journalctl -u $1"
    fi
    fail "$1 does not start: journalctl -u $1"
}

is_running() { # program
    case $1 in
    granary) "$bin/granary" ready --wait 60s >/dev/null 2>&1 || systemctl is-active --quiet granary.service ;;
    *) sleep 3 && systemctl is-active --quiet "$1.service" ;;
    esac
}

fetch SHA256SUMS
for program in "$@"; do
    if [ -e "/usr/bin/$program" ]; then
        fail "/usr/bin/$program is from a package: upgrade the package, or remove it first"
    fi
    unpack "$program"
    check_settings "$program"
done
for program in "$@"; do
    unpack "$program"
    place "$program"
    start "$program"
    rm -f "$bin/.$program.old"
    # Tells which archive is installed.
    install -d -m 755 "$share/granary"
    grep -F "  $archive" "$work/SHA256SUMS" >"$share/granary/$program.sha256"
    say "installed $("$bin/$program" --version)"
done
say "settings: /etc/granary; the page: http://localhost:7117"
