#!/bin/sh
# Builds the RPM package of a program from the folder of its archive, with rpmbuild.
#
#   deploy/rpm/build.sh PROGRAM VERSION ARCHITECTURE FOLDER OUT
#
# FOLDER contains what deploy/release.sh packs; ARCHITECTURE is x86_64 or aarch64. SOURCE_DATE_EPOCH makes
# the package reproducible.
set -eu
# The modes of folders are packaged as they are.
umask 022
cd "$(dirname "$0")"
# In a version of RPM, a tilde precedes the name of a pre-release.
name=$1 version=$(echo "$2" | tr - '~') architecture=$3 from=$4 out=$5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/tree
. ../package_tree.sh
put 640 etc/granary "$from/$settings"
put 644 usr/share/zsh/site-functions "$from/completions/zsh/_$name"

sed "s/@NAME@/$name/g; s/@SETTINGS@/$settings/g; s/@VERSION@/$version/g; s/@SUMMARY@/$summary/g" \
    package.spec >"$work/package.spec"
# The files of the package, without the settings, which the specification lists.
(cd "$tree" && find usr -type f | LC_ALL=C sort | sed 's|^|/|') >"$work/files"
rpmbuild -bb --quiet --target "$architecture-linux" --buildroot "$work/root" \
    --define "_topdir $work/top" --define "_rpmdir $work/rpms" --define "tree $tree" --define "listed $work/files" \
    --define "_buildhost granary" --define "use_source_date_epoch_as_buildtime 1" \
    --define "clamp_mtime_to_source_date_epoch 1" --define "_binary_payload w${COMPRESSION:-9}.gzdio" \
    "$work/package.spec" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
mv "$work/rpms/$architecture/$name-$version-1.$architecture.rpm" "$out/"
