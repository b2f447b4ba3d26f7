#!/usr/bin/env bash
# Builds what is released for clusters with KubeVirt: dist.sh DIR VERSION. It is a part of ../packaging/dist.sh.
#
#	godwit-kubevirt-VERSION-ARCH.oci.tar        image of the controller, an OCI layout
#	kubectl-godwit-VERSION-OS-ARCH.tar.gz       the plugin, its completion and the license
#	godwit.yaml                                 manifest of the plugin for krew, with the checksums of the archives
#
# ARCHES and SOURCE_DATE_EPOCH are those of the caller. SYSTEMS="linux" builds the plugin for one only.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=$(cd "$1" && pwd) version=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CGO_ENABLED=0 LC_ALL=C TZ=UTC
cd "$here"

rm -f "$out"/godwit-kubevirt-* "$out"/kubectl-godwit-* "$out"/godwit.yaml
build() { go build -trimpath -ldflags "-s -w -buildid=" -o "$1" "./cmd/$2"; }
(cd tools/release && go build -o "$work/image" ./image)

# The manifest gets a platform with each archive.
sed -e "s|@VERSION@|$version|" krew.yaml >"$out/godwit.yaml"
platform() {
	cat <<-END
	  - selector:
	      matchLabels:
	        os: $1
	        arch: $2
	    uri: https://github.com/godwit-vm/godwit/releases/download/v$version/$3
	    sha256: $(sha256sum "$out/$3" | cut -d' ' -f1)
	    bin: kubectl-godwit
	    files:
	    - from: "*"
	      to: .
	END
}
for arch in ${ARCHES:-amd64 arm64}; do
	GOOS=linux GOARCH=$arch build "$work/godwit-kubevirt" godwit-kubevirt
	"$work/image" "$work/godwit-kubevirt" "$arch" "$version" "$out/godwit-kubevirt-$version-$arch.oci.tar"
	for os in ${SYSTEMS:-linux darwin}; do
		archive=kubectl-godwit-$version-$os-$arch.tar.gz
		rm -rf "$work/plugin" && mkdir "$work/plugin"
		GOOS=$os GOARCH=$arch build "$work/plugin/kubectl-godwit" kubectl-godwit
		install -m 0755 cmd/kubectl-godwit/kubectl_complete-godwit "$work/plugin/"
		install -m 0644 ../LICENSE "$work/plugin/"
		chmod 0755 "$work/plugin" "$work/plugin/kubectl-godwit"
		tar -C "$work/plugin" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=gnu -c . |
			gzip -9 -n >"$out/$archive"
		platform $os "$arch" "$archive" >>"$out/godwit.yaml"
	done
done
