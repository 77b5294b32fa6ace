# shellcheck shell=bash
# The files that the Debian and the RPM package of a program share, put into the folder $tree. Read by
# deb/build.sh and rpm/build.sh, which set name, from and tree, and remove the folder.
case $name in
granary) settings=granary.toml summary="monitoring store that keeps samples pre-aggregated" ;;
granary-agent) settings=agent.toml summary="agent that samples hosts, databases and exporters" ;;
*) echo "no package for $name" >&2 && exit 1 ;;
esac

put() { # mode, target, files
    mode=$1 target=$tree/$2
    shift 2
    mkdir -p "$target" && install -m "$mode" -- "$@" "$target/"
}
put 755 usr/bin "$from/$name"
put 644 usr/lib/systemd/system "$from/$name.service"
put 644 "usr/share/doc/$name" "$from"/LICENSE* "$from"/CHANGELOG.md "$from"/docs/*
put 644 usr/share/man/man1 "$from"/man/*.1
gzip -9n "$tree"/usr/share/man/man1/*.1
put 644 usr/share/bash-completion/completions "$from/completions/bash/$name"
put 644 usr/share/fish/vendor_completions.d "$from/completions/fish/$name.fish"
