#!/bin/bash
# Runs the commands with which README.md starts a cluster, in a root that has this machine's files below it and the
# package installed: readme.sh PACKAGE README. It runs in mount and PID namespaces of its own, which take everything
# down with it.
set -euo pipefail
if [ "${2:-}" != inside ]; then
	. "$(dirname "$0")/root.sh"
	furnish
	cp "$0" "$root/tmp/readme.sh"
	cp "$1" "$root/tmp/godwit.deb"
	sed -n '/^godwit controller /,/^```$/{/^```/d;s/ --watch$//;p}' "$2" >"$root/tmp/commands"
	exec chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
		/usr/bin/unshare --net /bin/bash /tmp/readme.sh godwit.deb inside
fi
cd /tmp
ip link set lo up
dpkg -i godwit.deb
cat commands
set -x
. ./commands
godwit vm list | grep -E '^default/web +n2 +running .* 1$'
pgrep -c '^qemu-system' | grep -x 1
echo "== done"
