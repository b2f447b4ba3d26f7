#!/bin/bash
# Runs the conformance suites of the backends on Debian 13: QEMU 10.0 and libvirt 11.3. Its root
# is made once, in the cache folder, and used with chroot: no container, no other kernel.
#
#	run.sh [ARGUMENTS FOR THE TESTS]      default: -test.run '^TestConformance$'
#
# Everything runs in a mount and a PID namespace of its own: when it ends, in whatever way, the
# kernel takes down its mounts and its processes. GODWIT_DEBIAN13 names another folder for the root,
# GODWIT_DEBIAN13_SUITES some of "qmp libvirt". What the tests said is in bin/debian13-*.txt.
set -euo pipefail
cd "$(dirname "$0")/../.."

root=${GODWIT_DEBIAN13:-${XDG_CACHE_HOME:-$HOME/.cache}/godwit/debian13}
if [ "$(id -u)" != 0 ]; then
	echo "debian13: skipped: making a root and entering it takes root" >&2
	exit 0
fi
if [ -z "${GODWIT_DEBIAN13_INSIDE:-}" ]; then
	command -v debootstrap >/dev/null || { apt-get update -q &&
		DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends debootstrap; }
	tests=$(mktemp -d)
	trap 'rm -rf "$tests"' EXIT
	CGO_ENABLED=0 go test -c -o "$tests/qmp.test" ./hypervisor/qmp
	go test -c -tags libvirt_dlopen -o "$tests/libvirt.test" ./hypervisor/libvirt
	GODWIT_DEBIAN13_INSIDE=$tests unshare --mount --propagation private --pid --fork \
		--kill-child=KILL "$0" "$@"
	exit
fi

# enter mounts what the root needs of the machine, in our namespace only.
enter() {
	mount --bind "$root" "$root" # the tests want the root of what they see to be a mount
	mount -t proc proc "$root/proc"
	mount --rbind /dev "$root/dev"
	mount --rbind /sys "$root/sys"
}

if [ ! -e "$root/.complete" ]; then
	rm -rf --one-file-system "$root"
	mkdir -p "$root"
	debootstrap --variant=minbase trixie "$root" "${GODWIT_MIRROR:-http://deb.debian.org/debian}"
	printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d" # start no services
	chmod +x "$root/usr/sbin/policy-rc.d"
	enter
	DEBIAN_FRONTEND=noninteractive chroot "$root" apt-get install -y -q --no-install-recommends \
		qemu-system-x86 qemu-utils libvirt-daemon-driver-qemu libvirt-daemon-driver-storage \
		libvirt-daemon libvirt-clients iproute2
	echo 127.0.0.1 localhost >"$root/etc/hosts" # the tests mount their own over it
	touch "$root/.complete"
else
	enter
fi

mkdir -p "$root/godwit"
mount --bind "$GODWIT_DEBIAN13_INSIDE" "$root/godwit"
mount -t tmpfs tmpfs "$root/tmp"
mount -t tmpfs tmpfs "$root/run"
[ $# -gt 0 ] || set -- -test.run '^TestConformance$'
mkdir -p bin

# failures prints what the tests which failed have said.
failures() {
	awk 'NR == FNR { if (/^ *--- FAIL: /) failed[$3] = 1; next }
		$1 == "===" { now = $3 }
		/^ *--- FAIL/ || ((now in failed) && $1 != "===" && !/^ *--- /)' "$1" "$1"
}

status=0
for suite in ${GODWIT_DEBIAN13_SUITES:-qmp libvirt}; do
	log=bin/debian13-$suite.txt
	if ! chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TMPDIR=/tmp \
		GODWIT_LONG="${GODWIT_LONG-1}" GODWIT_TEST_PATIENCE="${GODWIT_TEST_PATIENCE:-1}" \
		--chdir=/godwit "/godwit/$suite.test" -test.v -test.timeout 40m "$@" >"$log" 2>&1; then
		status=1
		failures "$log"
	fi
	grep -E '^(PASS|FAIL|panic:)|^--- ' "$log" || echo "$suite ended without a result"
	grep -A12 -E '^ +run.go:[0-9]+: .*(QEMU|libvirt)' "$log" | grep -E 'QEMU|libvirt|cases ran|because' || :
done
exit $status
