#!/bin/bash
# Runs every command that docs/install.md, docs/first-cluster.md and docs/upgrade.md show, in this
# order, in a real systemd: docs.sh DIST DOCS.
set -euo pipefail
mount -t proc proc /proc # nspawn looks there for its child, by its number in this namespace
. "$(dirname "$0")/root.sh"
rm -f "$root"/etc/systemd/system/*.wants/*
mkdir "$root/root/dist"
cp "$1"/*.deb "$1"/SHA256SUMS "$root/root/dist/"
{
	cat <<'END'
set -euo pipefail
trap 'echo "ended with $?"; systemctl exit --no-block --force || systemctl poweroff --no-block' EXIT
cd /root/dist
ready() {
	for _ in $(seq 900); do
		if [ "$(godwit host list | grep -cE '^n[12] +(ready|draining)')" = 2 ]; then godwit host list; return; fi
		sleep 0.1
	done
	godwit host list
	exit 1
}
measure() { # until it is answered
	for _ in $(seq 100); do
		if godwit doctor --measure "$@"; then return; fi
		sleep 0.1
	done
	exit 1
}
ip link set lo up
ip address add 10.0.0.2/32 dev lo
set -x
END
	for page in install first-cluster upgrade; do
		sed -n '/^```sh$/,/^```$/{/^```/d;s/^godwit host list$/ready/;s/^godwit doctor --answer.*/& \&/;s/^godwit doctor --measure/measure/;p}' "$2/$page.md"
	done
	cat <<'END'
godwit vm list | grep -E '^default/web +n2 +running .* 1$'
pgrep -c '^qemu-system' | grep -x 1
echo "== done"
END
} >"$root/root/probe.sh"
cat >"$root/etc/systemd/system/probe.service" <<'END'
[Unit]
After=multi-user.target
[Service]
Type=oneshot
ExecStart=/bin/bash /root/probe.sh
StandardOutput=file:/root/probe.out
StandardError=inherit
END
mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
ln -s /etc/systemd/system/probe.service "$root/etc/systemd/system/multi-user.target.wants/"
kvm=--quiet
[ ! -c /dev/kvm ] || kvm=--bind=/dev/kvm
SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1 systemd-nspawn --register=no --keep-unit --private-network "$kvm" \
	-b -D "$root" </dev/null >"$over/boot.out" 2>&1 || : # it is told to end
cat "$root/root/probe.out" || tail -50 "$over/boot.out"
