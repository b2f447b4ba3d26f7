# make test is what continuous integration runs. Everything works on a clean
# checkout of a fresh Debian machine that has Go and GNU make.

SHELL       := bash
.SHELLFLAGS := -eu -o pipefail -c

GO       ?= go
# The libvirt backend needs no headers with this tag: it loads libvirt.so at run time.
TAGS     ?= libvirt_dlopen
FUZZTIME ?= 5s
BIN      ?= bin

# Property tests start from a seed that the commit determines, so that a failure
# can be repeated and each commit tries other cases. Without a commit it is 1.
# Set RAPID_SEED to choose another; 0 draws one.
RAPID_SEED ?= 0x$(or $(shell git rev-parse --short=15 HEAD 2>/dev/null),1)
export RAPID_SEED

.DEFAULT_GOAL := test
.PHONY: setup build dist test test-all test-debian13 test-kubevirt fmt vet staticcheck lint fuzz bench vectors rewrite

# setup installs what is missing: -race needs a C compiler, the tests of the backends need
# QEMU, libvirt and iproute2, those of the report a browser, those of fencing an agent, those of
# Ganeti's files its htools, and are skipped without them. Prometheus, which judges rules of alerts, is
# unpacked into the user's cache: its package would start a service. setup also reserves 64 huge pages
# of 2 MiB, where the kernel allows that. It changes nothing else.
setup:
	@command -v $(GO) >/dev/null || { echo "setup: Go 1.26 or newer is needed" >&2; exit 1; }
	@need=; \
	command -v gcc >/dev/null || need="gcc libc6-dev"; \
	command -v qemu-system-x86_64 >/dev/null || need="$$need qemu-system-x86"; \
	command -v qemu-img >/dev/null || need="$$need qemu-utils"; \
	command -v libvirtd >/dev/null || need="$$need libvirt-daemon-system"; \
	command -v chromium >/dev/null || need="$$need chromium"; \
	command -v virsh >/dev/null || need="$$need libvirt-clients"; \
	command -v ip >/dev/null || need="$$need iproute2"; \
	test -x /usr/sbin/fence_dummy || need="$$need fence-agents"; \
	command -v hbal >/dev/null || need="$$need ganeti-htools"; \
	test -z "$$need" || { \
		apt-get update -q && \
		DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
			$$need; } || command -v gcc >/dev/null
	@cache=$${XDG_CACHE_HOME:-$$HOME/.cache}/godwit/debian; \
	command -v promtool >/dev/null || test -x $$cache/usr/bin/promtool || { \
		mkdir -p $$cache && cd $$cache && apt-get download -q prometheus && \
		dpkg-deb -x prometheus_*.deb . && rm -f prometheus_*.deb; } || :
	@pages=/proc/sys/vm/nr_hugepages; \
	if [ -w $$pages ] && [ "$$(cat $$pages)" -lt 64 ]; then echo 64 > $$pages || :; fi

build:
	$(GO) build -tags $(TAGS) ./...
	$(GO) build -tags $(TAGS) -o $(BIN)/ ./cmd/...

# dist builds what is released into bin/dist: binaries, Debian packages, checksums, a bill of
# materials. The same commit gives the same bytes.
dist:
	@packaging/dist.sh $(BIN)/dist

# test is the default tier. test-all adds the long one, and does not repeat what test has
# passed on the same commit. Both end with what ran for real, what was skipped and why, and
# how long each stage took: see internal/tools/testrun.
test: setup
	@$(GO) run -C internal/tools ./testrun -tags $(TAGS) -out $(BIN)

test-all: setup
	@$(GO) run -C internal/tools ./testrun -tags $(TAGS) -out $(BIN) -tier all

# test-debian13 runs the conformance suites on QEMU 10.0 and libvirt 11.3, in a root of its own.
test-debian13:
	@internal/debian13/run.sh

# test-kubevirt tests the module for clusters with KubeVirt, which has the libraries of Kubernetes.
test-kubevirt:
	cd kubevirt && $(GO) vet ./... && $(GO) test ./...

fmt:
	@files=$$(gofmt -l .); if [ -n "$$files" ]; then \
		echo "gofmt would change:" >&2; echo "$$files" >&2; exit 1; fi

vet:
	$(GO) vet -tags $(TAGS) ./...

staticcheck:
	$$($(GO) -C internal/tools tool -n staticcheck) -tags $(TAGS) ./...

# lint checks the style and the architecture; make test includes it.
lint: fmt vet staticcheck
	$(GO) -C internal/tools test -count=1 ./lint

# fuzz runs every fuzz target for a short time.
fuzz:
	@for pkg in $$($(GO) list -tags $(TAGS) ./...); do \
		for target in $$($(GO) test -tags $(TAGS) -list '^Fuzz' $$pkg | grep '^Fuzz' || :); do \
			$(GO) test -tags $(TAGS) -run '^$$' -fuzz "^$$target$$" \
				-fuzztime $(FUZZTIME) $$pkg; \
		done; done

bench:
	$(GO) test -tags $(TAGS) -run '^$$' -bench . -benchmem ./...

# vectors replays the decisions recorded from KubeVirt, and says how many.
vectors:
	@dirs=$$(grep -rl 'testutil.Replay' --include='*_test.go' . | xargs -n1 dirname | sort -u); \
		$(GO) test -count=1 -tags $(TAGS) -v -run Vectors $$dirs

# rewrite writes the transcripts anew. The difference is what gets reviewed.
rewrite:
	@dirs=$$(grep -rlE 'cockroachdb/datadriven"|"rewrite"' --include='*_test.go' . | \
		xargs -r -n1 dirname | sort -u || :); \
	if [ -z "$$dirs" ]; then echo "no package has transcripts"; else \
		$(GO) test -count=1 -tags $(TAGS) $$dirs -rewrite; fi
