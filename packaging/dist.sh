#!/usr/bin/env bash
# Builds what is released into a folder: dist.sh [DIR], default bin/dist.
#
#	godwit-linux-ARCH                static, without libvirt
#	godwit_VERSION-1_ARCH.deb        with libvirt, which it loads at run time; units, pages, completions
#	Dockerfile  godwit-VERSION-ARCH.cdx.json  SHA256SUMS
#	and what ../kubevirt/dist.sh builds
#
# The same commit gives the same bytes, wherever it is built, with the same Go and C compilers.
# ARCHES="amd64" builds for one only. The C compiler of arm64 is gcc-aarch64-linux-gnu; without it
# the package of arm64 is refused.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
out=${1:-$root/bin/dist}
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cd "$root"
export LC_ALL=C TZ=UTC
VERSION=$(sed -n 's/^const Version = "\(.*\)"$/\1/p' internal/cli/version.go)
COMMIT=${GODWIT_COMMIT:-$(git rev-parse HEAD)}
if [ -z "${GODWIT_COMMIT:-}" ] && [ -n "$(git status --porcelain)" ]; then
	echo "dist: files differ from the commit $COMMIT: commit them, or name what this is: GODWIT_COMMIT=NAME" >&2
	exit 1
fi
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
MTIME=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)

# The defaults of this machine are not the user's: no flag of theirs changes the bytes.
export GOFLAGS="-trimpath -buildvcs=false -mod=readonly" GOAMD64=v1 GOARM64=v8.0 GOWORK=off
export CGO_CFLAGS="-O2 -g0" CGO_LDFLAGS="-Wl,--build-id=none"
stamp="-s -w -buildid= -X github.com/godwit-vm/godwit/internal/cli.commit=$COMMIT"
build() { go build -ldflags "$stamp" "$@" ./cmd/godwit; }

rm -f "$out"/godwit* "$out"/SHA256SUMS "$out"/Dockerfile
(cd "$here" && CGO_ENABLED=0 go build -ldflags "-s -w -buildid=" -o "$work/tools/" tool)
build -tags libvirt_dlopen -o "$work/native"

# What both packages have, as it is installed: modes and times are in the package.
stage=$work/stage doc=$work/stage/usr/share/doc/godwit
put() { install -D -m 0644 "$1" "$2"; }
"$work/native" man "$work/man"
gzip -9 -n "$work"/man/*
for page in "$work"/man/*; do put "$page" "$stage/usr/share/man/man1/${page##*/}"; done
for shell in bash zsh fish; do "$work/native" completion $shell >"$work/$shell"; done
put "$work/bash" "$stage/usr/share/bash-completion/completions/godwit"
put "$work/zsh" "$stage/usr/share/zsh/vendor-completions/_godwit"
put "$work/fish" "$stage/usr/share/fish/vendor_completions.d/godwit.fish"
for unit in "$here"/units/*; do put "$unit" "$stage/lib/systemd/system/${unit##*/}"; done
for page in docs/*.md; do put "$page" "$doc/$page"; done
put "$here/default/agent" "$doc/examples/godwit-agent"
put "$here/copyright" "$doc/copyright"
gzip -9 -n -c CHANGELOG.md >"$work/changelog.gz"
put "$work/changelog.gz" "$doc/changelog.gz"
put "$here/default/controller" "$stage/controller"

for ARCH in ${ARCHES:-amd64 arm64}; do
	compiler=x86_64-linux-gnu-gcc
	[ "$ARCH" = amd64 ] || compiler=aarch64-linux-gnu-gcc
	command -v $compiler >/dev/null || compiler=gcc-of-$ARCH
	if [ "$compiler" = "gcc-of-$ARCH" ]; then
		echo "dist: no C compiler for $ARCH: apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross" >&2
		exit 1
	fi
	GOARCH=$ARCH CGO_ENABLED=0 build -o "$out/godwit-linux-$ARCH"
	GOARCH=$ARCH CGO_ENABLED=1 CC=$compiler build -tags libvirt_dlopen -o "$work/godwit"
	install -D -m 0755 "$work/godwit" "$stage/usr/bin/godwit"
	# What is in the program, by what the linker has written into it. The time of writing is left out.
	"$work/tools/cyclonedx-gomod" bin -json -std -noserial -output-version 1.5 -version "v$VERSION" \
		-output "$work/bom.raw" "$work/godwit"
	sed -E '/^ *"timestamp": /d' "$work/bom.raw" >"$work/bom.json"
	put "$work/bom.json" "$doc/godwit.cdx.json"
	cp "$work/bom.json" "$out/godwit-$VERSION-$ARCH.cdx.json"
	find "$stage" -type d -exec chmod 0755 {} +
	find "$stage" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
	sed -e "s|@STAGE@|$stage|" -e "s|@ARCH@|$ARCH|" -e "s|@VERSION@|$VERSION|" -e "s|@MTIME@|$MTIME|" \
		"$here/nfpm.yaml" >"$work/nfpm.yaml"
	(cd "$here" && "$work/tools/nfpm" package -f "$work/nfpm.yaml" -p deb -t "$out/" >/dev/null)
done
cp "$here/Dockerfile" "$out/"
mkdir -p "$out/state" # empty: the image's volume
kubevirt/dist.sh "$out" "$VERSION"
cd "$out" && sha256sum godwit* kubectl-godwit* Dockerfile >SHA256SUMS
