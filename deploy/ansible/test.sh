#!/bin/bash
# Runs the role of granary-agent in a Debian root with Python: it installs, changes nothing when it is
# repeated, upgrades, and changes the settings. The root has no systemd, so no service is started.
#
#   deploy/ansible/test.sh ROOT OLD_RELEASE NEW_RELEASE
set -euo pipefail
cd "$(dirname "$0")"
export ROOT=$1
old=$2 new=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: ansible: $*" >&2; cat "$work/log" >&2; exit 1; }

# Stands in for ssh: the last argument is the command.
printf '#!/bin/bash\nexec env -i PATH="$PATH" HOME=/root LC_ALL=C.UTF-8 chroot "$ROOT" /bin/sh -c "${!#}"\n' >"$work/ssh"
chmod +x "$work/ssh"
cat >"$work/inventory.yml" <<END
agents:
  hosts:
    root:
      ansible_connection: ssh
      ansible_ssh_executable: $work/ssh
      ansible_ssh_transfer_method: piped
      ansible_become: false
      ansible_python_interpreter: /usr/bin/python3
      granary_agent_url: https://granary.example.org:7117
      granary_agent_key: secret-of-the-test
      granary_agent_tags: {env: prod, "the team": 'a "b"'}
      granary_agent_options: interval = "30s"
END
# Ansible refuses the locale C.
export LC_ALL=C.UTF-8
export ANSIBLE_ROLES_PATH=$PWD/roles ANSIBLE_HOME=$work/home ANSIBLE_NOCOLOR=1 ANSIBLE_PIPELINING=1 ANSIBLE_LOCALHOST_WARNING=0
play() { # expected number of changes ("some" for any), release, arguments
    local expected=$1 release=$2
    shift 2
    ansible-playbook -i "$work/inventory.yml" agents.yml -e "granary_agent_release=$release" "$@" >"$work/log" 2>&1 ||
        fail "the role failed with $release $*"
    ! grep -q secret-of-the-test "$work/log" || fail "the key is in the output"
    local changed
    changed=$(sed -n 's/.* changed=\([0-9]*\) .*/\1/p' "$work/log")
    case $expected:$changed in
    some:0 | none:[1-9]*) fail "$changed changes instead of $expected with $release $*" ;;
    esac
}
expect() { # file, owner and mode, text
    [ "$(chroot "$ROOT" stat -c '%U:%G %a' "$1")" = "$2" ] || fail "owner of $1"
    grep -qF -- "$3" "$ROOT/$1" || fail "$1 lacks $3"
}

play some "$old"
[ ! -e "$ROOT"/tmp/granary-agent.* ] || fail "a temporary folder is left"
expect /etc/granary/agent.toml "root:granary-agent 640" 'url = "https://granary.example.org:7117"'
expect /etc/granary/agent.toml "root:granary-agent 640" 'tags = { "env" = "prod", "the team" = "a \"b\"" }'
expect /etc/granary/agent.key "root:granary-agent 640" secret-of-the-test
chroot "$ROOT" granary-agent --version >/dev/null || fail "the agent does not run"
# The agent accepts the settings; no daemon answers at that address.
chroot "$ROOT" granary-agent test --config /etc/granary/agent.toml >"$work/round" 2>&1 || true
grep -q '^system_load_1m' "$work/round" || { cat "$work/round"; fail "the agent refuses the settings"; }
play none "$old"
# Without the variable, the key of an earlier run stays in use.
play none "$old" -e granary_agent_key=
expect /etc/granary/agent.toml "root:granary-agent 640" 'key_file = "/etc/granary/agent.key"'
# A check succeeds before an upgrade, and shows no text of the settings.
play some "$new" --check --diff -e '{"granary_agent_sections": "password = \"secret-of-the-test\""}'
play some "$new"
grep -q "$(basename "$new"/granary-agent-*-musl.tar.gz)" "$ROOT/usr/local/share/granary/granary-agent.sha256" ||
    fail "the new release is not installed"
play some "$new" -e '{"granary_agent_sections": "[host]\nprocesses = [\"nginx\"]\n"}'
expect /etc/granary/agent.toml "root:granary-agent 640" 'processes = ["nginx"]'
rm "$ROOT/usr/local/share/granary/granary-agent.sha256"
play some "$new"
play none "$new"
mkdir "$work/other" && echo >"$work/other/SHA256SUMS"
! ansible-playbook -i "$work/inventory.yml" agents.yml -e "granary_agent_release=$work/other" >"$work/log" 2>&1 ||
    fail "a release without an archive was accepted"
grep -q "has no granary-agent for" "$work/log" || fail "no reason"
echo "ansible: the role installs, upgrades and configures, and changes nothing when it is repeated"
