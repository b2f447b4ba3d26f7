# make test is what continuous integration runs. Everything works on a clean
# checkout of a fresh Debian machine that has Go and GNU make.

SHELL       := bash
.SHELLFLAGS := -eu -o pipefail -c

GO       ?= go
# The libvirt backend needs no headers with this tag: it loads libvirt.so at run time.
TAGS     ?= libvirt_dlopen
FUZZTIME ?= 5s
SOAK     ?= 3000
BIN      ?= bin
# The packages whose tests depend on the machine and run real QEMUs, one after the other,
# and libvirtds, which have hosts of their own, and where what they print is kept.
REAL     := ./hypervisor/qmp/... ./hypervisor/hypervisortest/guest/...
LIBVIRT  := ./hypervisor/libvirt/... ./examples/libvirt-drain
# The same of those that run godwit's own processes, and real stores.
CLUSTER  := ./record/etcd/... ./record/bolt ./record/remote ./fence ./cmd/... \
	$$($(GO) list -tags $(TAGS) ./daemon/... | grep -v /murder)
REPORT   ?= $(BIN)/real.txt
APART    := /hypervisor/(qmp|libvirt|hypervisortest/guest)(/|$$)|/libvirt-drain$$|/record/(etcd|bolt|remote)(/|$$)|/fence$$|/cmd/|/daemon(/|$$)|/sim/report$$
# Of that, the results, the figures, and what was skipped and why.
TELLING  := '^(ok|FAIL|panic:|--- |Benchmark)|^ +--- (FAIL|SKIP)|^ +[a-z_]+_test.go:|^ +run.go:|ran, |^ +(source|target|link)[^ ]* [A-Za-z]+ +[0-9]'

# Property tests start from a seed that the commit determines, so that a failure
# can be repeated and each commit tries other cases. Without a commit it is 1.
# Set RAPID_SEED to choose another; 0 draws one.
RAPID_SEED ?= 0x$(or $(shell git rev-parse --short=15 HEAD 2>/dev/null),1)
export RAPID_SEED

.DEFAULT_GOAL := test
.PHONY: setup build test fmt vet staticcheck lint fuzz bench vectors rewrite summary

# setup installs what is missing and changes nothing else: -race needs a C compiler,
# the tests of the backends need QEMU, libvirt and iproute2, those of the report a
# browser, and are skipped without them.
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
	test -z "$$need" || { \
		apt-get update -q && \
		DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
			$$need; } || command -v gcc >/dev/null

build:
	$(GO) build -tags $(TAGS) ./...
	$(GO) build -tags $(TAGS) -o $(BIN)/ ./cmd/...

# What takes too long under the race detector, every combination of what a decision
# may see and SOAK random worlds, runs without it afterwards.
# The results are not taken from the cache: it does not know of the seed.
test: setup fmt vet staticcheck
	@echo "RAPID_SEED=$(RAPID_SEED)"; mkdir -p $(dir $(REPORT))
	@status=0; $(GO) test -race -count=1 -timeout 30m -tags $(TAGS) \
			$$($(GO) list -tags $(TAGS) ./... | grep -vE '$(APART)') || status=$$?; \
		GODWIT_SOAK=$(SOAK) $(GO) test -count=1 -tags $(TAGS) -run 'Exhaustion|Soak' \
			./migration ./sim || status=$$?; \
		$(GO) test -count=1 -tags $(TAGS) -v ./sim/explore | grep -E '^(ok|FAIL|explored|---)' || status=$$?; \
		{ bad=0; $(GO) test -count=1 -tags $(TAGS) -v ./sim/report || bad=1; \
			$(GO) test -race -count=1 -timeout 15m -tags $(TAGS) -p 1 -v $(CLUSTER) || bad=1; \
			$(GO) test -count=1 -tags $(TAGS) -v ./daemon/murder || bad=1; \
			GODWIT_MURDER=1 $(GO) test -race -count=1 -timeout 30m -tags $(TAGS) \
			-p 1 -v $(REAL) || bad=1; \
			$(GO) test -race -count=1 -timeout 25m -tags $(TAGS) -p 2 -v $(LIBVIRT) || bad=1; \
			$(GO) test -tags $(TAGS) -p 1 -run '^$$' -bench 'WhatAMoveCosts/^(capped|kvm,_idling)' \
			-benchtime 2x ./hypervisor/qmp ./hypervisor/libvirt || bad=1; \
			exit $$bad; } \
			2>&1 | tee $(REPORT) | grep --line-buffered -E $(TELLING) || status=$$?; \
		if [ $$status != 0 ]; then $(failures); fi; \
		$(summary); exit $$status

fmt:
	@files=$$(gofmt -l .); if [ -n "$$files" ]; then \
		echo "gofmt would change:" >&2; echo "$$files" >&2; exit 1; fi

vet:
	$(GO) vet -tags $(TAGS) ./...

staticcheck:
	$(GO) tool staticcheck -tags $(TAGS) ./...

# lint checks the style and the architecture; make test includes it.
lint: fmt vet staticcheck
	$(GO) test -count=1 ./internal/lint

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
	@dirs=$$(grep -rl '/internal/vectors"' --include='*_test.go' . | xargs -n1 dirname | sort -u); \
		$(GO) test -count=1 -tags $(TAGS) -v -run Vectors $$dirs

# rewrite writes the transcripts anew. The difference is what gets reviewed.
rewrite:
	@dirs=$$(grep -rlE 'cockroachdb/datadriven"|"rewrite"' --include='*_test.go' . | \
		xargs -r -n1 dirname | sort -u || :); \
	if [ -z "$$dirs" ]; then echo "no package has transcripts"; else \
		$(GO) test -count=1 -tags $(TAGS) $$dirs -rewrite; fi

# failures repeats everything that the tests which failed have said: where tests run side by
# side it stands far from their results. Names are those of one package, which ends its part.
define failures
awk 'NR == FNR { \
		if ($$1 == "---" && $$2 == "FAIL:") failed[part, $$3] = 1; \
		if (/^(ok|FAIL)[ \t]/) part++; \
		next } \
	FNR == 1 { part = now = "" } \
	$$1 == "===" { now = $$3; if ($$2 != "RUN") next } \
	/^(FAIL|panic:)/ || /^ *--- FAIL/ || \
		((part, now) in failed && !/^ *--- /) { print } \
	/^(ok|FAIL)[ \t]/ { part++; now = "" }' $(REPORT) $(REPORT)
endef

# summary says what of the machine the tests have really used.
define summary
echo "ran with $$($(GO) env GOVERSION) on $$(nproc) cores, RAPID_SEED=$(RAPID_SEED)"; \
echo "real: $$(grep -ohE '(libvirt [0-9.]+, )?QEMU [0-9.]+, (kvm|tcg|qemu)' $(REPORT) | sort -u | \
	tr '\n' ';')" \
	"$$(grep -c -- '--- PASS' $(REPORT)) tests passed, $$(grep -c -- '--- SKIP' $(REPORT)) skipped"; \
grep -hB1 -- "--- SKIP" $(REPORT) | grep -E "_test.go:|run.go:" | sort | uniq -c || :; \
if [ -e /dev/kvm ]; then kvm=present; else kvm=absent; fi; \
if [ -e /dev/userfaultfd ]; then uffd=present; else uffd=absent; fi; \
echo "KVM is $$kvm, userfaultfd $$uffd, user $$(id -un)"
endef

summary:
	@test -e $(REPORT) && { $(summary); } || echo "make test has not run yet"
