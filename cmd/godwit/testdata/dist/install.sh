#!/bin/bash
# Installs the package in a root that has this machine's files below it, drains a host with it, and
# upgrades it while a VM runs: install.sh PACKAGE FIRMWARE ACCELERATOR. It runs in mount and PID
# namespaces of its own, which take everything down with it.
set -euo pipefail
if [ "${4:-}" != inside ]; then
	. "$(dirname "$0")/root.sh"
	furnish
	cp "$0" "$root/tmp/install.sh"
	cp "$1" "$root/tmp/godwit.deb"
	cp "$2" "$root/tmp/guest.rom"
	exec chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
		/bin/bash /tmp/install.sh godwit.deb guest.rom "$3" inside
fi
cd /tmp
step() { echo "== $*"; }
# until PATTERN COMMAND... waits for what is to come about.
until_says() {
	local want=$1 said
	shift
	for _ in $(seq 1800); do
		said=$("$@" 2>&1) || :
		if grep -qE "$want" <<<"$said"; then return; fi
		sleep 0.1
	done
	echo "waited for $want; $* says: $said"
	cat /tmp/*.out
	exit 1
}
qemus() { pgrep -c '^qemu-system' || :; }

step install
dpkg -i godwit.deb
test "$(command -v godwit)" = /usr/bin/godwit
godwit version
grep -q '^backends *qmp, libvirt$' <<<"$(godwit version)"
test "$(stat -c %a /lib/systemd/system /etc/default/godwit-controller | tr '\n' ' ')" = '755 640 '
dpkg --verify godwit

step units
if command -v systemd-analyze >/dev/null; then
	said=$(systemd-analyze verify --man=no godwit-controller.service godwit-agent@n1.service 2>&1) || :
	if grep -F godwit <<<"$said"; then exit 1; fi
	for unit in controller=25 agent@=60; do # exposure of 10.0, times ten
		systemd-analyze security --offline=true --threshold="${unit#*=}" \
			"/lib/systemd/system/godwit-${unit%=*}.service" | tail -1
	done
fi

step drain
. /etc/default/godwit-controller
export GODWIT_STORE=bolt:/var/lib/godwit/cluster.db
install -d -m 0755 /var/lib/godwit # as StateDirectory= makes it
install -d -m 0750 /var/log/godwit
start() {
	godwit controller --name a --heartbeat-interval 1s $CONTROLLER_FLAGS >>controller.out 2>&1 &
	controller=$!
	for host in n1 n2; do
		godwit agent --host $host --dir /var/lib/godwit/$host --memory 1GiB --cpus 4 \
			--heartbeat-interval 1s --accelerator "$accelerator" >>$host.out 2>&1 &
		agents="${agents:-} $!"
	done
	until_says '^n1 +(ready|draining)' godwit host list
	until_says '^n2 +(ready|draining)' godwit host list
}
accelerator=$3
start
godwit vm add web --memory 48MiB --machine pc --firmware /tmp/guest.rom --host n1
until_says '^default/web +n1 +running .* 1$' godwit vm list
timeout 300 godwit drain n1 --wait
until_says '^default/web +n2 +running .* 1$' godwit vm list
test "$(qemus)" = 1
grep -q '"kind":"note"' /var/log/godwit/controller.log

step upgrade
kill -TERM $controller $agents
wait || :
test "$(qemus)" = 1
dpkg -i godwit.deb
test "$(qemus)" = 1
agents=
start
godwit host undrain n1
timeout 300 godwit drain n2 --wait
until_says '^default/web +n1 +running .* 1$' godwit vm list

step remove
kill -TERM $controller $agents
wait || :
dpkg -P godwit
test ! -e /usr/bin/godwit
test -e /var/lib/godwit/cluster.db
test "$(qemus)" = 1
pkill -KILL '^qemu-system' # of this PID namespace
step done
