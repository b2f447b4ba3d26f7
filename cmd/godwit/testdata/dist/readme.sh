#!/bin/bash
# Runs the commands with which README.md starts a cluster, in a root that has this machine's files below it and the
# package installed: readme.sh PACKAGE README. It runs in mount and PID namespaces of its own, which take everything
# down with it.
set -euo pipefail
if [ "${2:-}" != inside ]; then
	over=$(mktemp -d)
	mount -t tmpfs tmpfs "$over"
	mkdir "$over/upper" "$over/work" "$over/root"
	mount -t overlay overlay -o "lowerdir=/,upperdir=$over/upper,workdir=$over/work" "$over/root"
	mount -t proc proc "$over/root/proc"
	mount --rbind /dev "$over/root/dev"
	mount -t tmpfs tmpfs "$over/root/run"
	mount -t tmpfs tmpfs "$over/root/tmp"
	cp "$0" "$over/root/tmp/readme.sh"
	cp "$1" "$over/root/tmp/godwit.deb"
	sed -n '/^godwit controller /,/^```$/{/^```/d;s/ --watch$//;p}' "$2" >"$over/root/tmp/commands"
	exec chroot "$over/root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
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
