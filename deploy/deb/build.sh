#!/bin/sh
# Builds the Debian package of a program from the folder of its archive, with dpkg-deb alone.
#
#   deploy/deb/build.sh PROGRAM VERSION ARCHITECTURE FOLDER OUT
#
# FOLDER contains what deploy/release.sh packs. SOURCE_DATE_EPOCH makes the package reproducible.
set -eu
cd "$(dirname "$0")"
name=$1 version=$2 architecture=$3 from=$4 out=$5
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
chmod 755 "$tree"
. ../package_tree.sh
put 644 etc/granary "$from/$settings"
put 644 usr/share/zsh/vendor-completions "$from/completions/zsh/_$name"
cp "$tree/usr/share/doc/$name/LICENSE" "$tree/usr/share/doc/$name/copyright"

mkdir "$tree/DEBIAN"
depends=passwd
if readelf -d "$from/$name" | grep -q NEEDED; then depends="$depends, libc6"; fi
size=$(du -sk --apparent-size --exclude=DEBIAN "$tree" | cut -f1)
cat >"$tree/DEBIAN/control" <<EOF
Package: $name
Version: $version
Architecture: $architecture
Maintainer: Granary <granary@localhost>
Section: admin
Priority: optional
Installed-Size: $size
Depends: $depends
Description: $summary
EOF
echo "/etc/granary/$settings" >"$tree/DEBIAN/conffiles"
for script in postinst prerm postrm; do
    sed "s/@NAME@/$name/g; s/@SETTINGS@/$settings/g" $script >"$tree/DEBIAN/$script"
    chmod 755 "$tree/DEBIAN/$script"
done
(cd "$tree" && find etc usr -type f | LC_ALL=C sort | xargs md5sum >DEBIAN/md5sums)
find "$tree" -type d -exec chmod 755 {} +
dpkg-deb --root-owner-group -Zgzip "-z${COMPRESSION:-9}" --build "$tree" "$out/${name}_${version}_$architecture.deb" >/dev/null
