#!/bin/bash
# Runs the daemons of the package as units of a real systemd, which it boots in a container that
# has this machine's files below it: systemd.sh PACKAGE FIRMWARE. VMs must outlive their agents,
# however those end.
set -euo pipefail
mount -t proc proc /proc # nspawn looks there for its child, by its number in this namespace
. "$(dirname "$0")/root.sh"
rm -f "$root"/etc/systemd/system/*.wants/* # no service of the machine itself
cp "$1" "$root/root/godwit.deb"
cp "$2" "$root/root/guest.rom"
chroot "$root" dpkg -i /root/godwit.deb >/dev/null
cat >"$root/etc/default/godwit-agent" <<'END'
AGENT_FLAGS="--memory 1GiB --cpus 4 --heartbeat-interval 1s"
END
mkdir -p "$root/etc/systemd/system/godwit-agent@.service.d"
cat >"$root/etc/systemd/system/godwit-agent@.service.d/test.conf" <<'END'
[Service]
WatchdogSec=4
RestartSec=1
END
cat >"$root/root/probe.sh" <<'END'
#!/bin/bash
set -euo pipefail
export GODWIT_STORE=bolt:/var/lib/godwit/cluster.db
trap 'echo "ended with $?"; systemctl exit --no-block --force || systemctl poweroff --no-block' EXIT
until_says() {
	local want=$1 said
	shift
	for _ in $(seq 900); do
		said=$("$@" 2>&1) || :
		if grep -qE "$want" <<<"$said"; then return; fi
		sleep 0.1
	done
	echo "waited for $want; $* says: $said"
	journalctl --no-pager -n 60 -u 'godwit-*'
	exit 1
}
main() { systemctl show -P MainPID "$1"; }
systemctl start godwit-controller godwit-agent@n1 godwit-agent@n2
until_says '^n1 +ready(.|\n)*' godwit host list
until_says '^n2 +ready(.|\n)*' godwit host list
godwit vm add web --memory 48MiB --machine pc --firmware /root/guest.rom --host n1
until_says '^default/web +n1 +running .* 1$' godwit vm list
timeout 200 godwit drain n1 --wait
until_says '^default/web +n2 +running .* 1$' godwit vm list
vm=$(pgrep -o '^qemu-system')

echo "== the agent is stopped, and started again"
systemctl stop godwit-agent@n2
test "$(pgrep '^qemu-system')" = "$vm"
systemctl start godwit-agent@n2
until_says 'STATUS=runs|StatusText=runs' systemctl show godwit-agent@n2
until_says '^default/web +n2 +running .* 1$' godwit vm list

echo "== the agent is killed"
before=$(main godwit-agent@n2)
kill -KILL "$before"
until_says '^active' bash -c "test \$(systemctl show -P MainPID godwit-agent@n2) != $before && systemctl is-active godwit-agent@n2"
test "$(pgrep '^qemu-system')" = "$vm"

echo "== the agent hangs, and the watchdog ends it"
until_says 'StatusText=runs' systemctl show godwit-agent@n2
before=$(main godwit-agent@n2)
kill -STOP "$before"
until_says '^active' bash -c "p=\$(systemctl show -P MainPID godwit-agent@n2); test \$p != $before && test \$p != 0 && systemctl is-active godwit-agent@n2"
grep -q 'Watchdog timeout' <<<"$(journalctl --no-pager -u godwit-agent@n2)"
test "$(pgrep '^qemu-system')" = "$vm"

echo "== the controller and the agents are stopped, upgraded and started"
systemctl stop godwit-controller 'godwit-agent@*'
dpkg -i /root/godwit.deb >/dev/null
test "$(pgrep '^qemu-system')" = "$vm"
systemctl start godwit-controller godwit-agent@n1 godwit-agent@n2
until_says '^n2 +ready' godwit host list
godwit host undrain n1
timeout 200 godwit drain n2 --wait
until_says '^default/web +n1 +running .* 1$' godwit vm list
systemctl show -P Result godwit-controller godwit-agent@n1 godwit-agent@n2
echo "== done"
END
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

SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1 systemd-nspawn --register=no --keep-unit \
	--private-network "$kvm" -b -D "$root" </dev/null >"$over/boot.out" 2>&1 ||
	: # it is told to end
cat "$root/root/probe.out" || tail -50 "$over/boot.out"
