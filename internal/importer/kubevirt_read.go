package importer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"github.com/godwit-vm/godwit/inventory"
)

// Limits on what is read. One object is held in memory at a time.
const (
	// maxInput is how long the whole input may be.
	maxInput = 1 << 30
	// MaxObject is how long one object may be. Kubernetes stores at most 1.5 MiB.
	MaxObject = MaxPiece
	// maxObjects is how many objects there may be.
	maxObjects = 1_000_000
)

// ReadKubeVirt reads what kubectl printed, as JSON or YAML. The name is the file's, for
// problems; d is what KubeVirt does not know. An error is [inventory.Problems],
// unless r fails or d is invalid.
func ReadKubeVirt(name string, r io.Reader, d inventory.Defaults) (*inventory.Fleet, error) {
	if err := d.Validate(); err != nil {
		return nil, err
	}
	limited := &io.LimitedReader{R: r, N: maxInput + 1}
	buffered := bufio.NewReaderSize(limited, 1<<16)
	take := SplitYAML
	if start, _ := buffered.Peek(512); looksLikeJSON(start) {
		take = SplitJSON
	}
	f := newReader(name, d)
	err := take(buffered, f.object)
	switch problem, is := err.(Error); {
	case limited.N <= 0:
		f.Errorf(0, "", "it is longer than %d MiB", maxInput>>20)
	case is:
		f.Errorf(problem.Line, "", "%s", problem.Message)
	case err != nil && err != errEnough:
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return f.fleet()
}

// ReadKubeVirtFile reads a file, whatever it is of: what kubectl printed, as [ReadKubeVirt] does,
// or godwit's own YAML, as [inventory.ReadFleet] does. Only the former uses d: the
// latter has defaults of its own.
func ReadKubeVirtFile(path string, d inventory.Defaults) (*inventory.Fleet, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	buffered := bufio.NewReaderSize(file, 1<<16)
	start, err := buffered.Peek(1 << 16)
	if err != nil && err != io.EOF {
		return nil, err
	}
	name := path
	switch {
	case kubectl.in(start) < own.in(start):
		return ReadKubeVirt(name, buffered, d)
	case own.in(start) < len(start):
		return inventory.ReadFleet(name, buffered)
	}
	if len(bytes.TrimSpace(start)) == 0 && len(start) < 1<<16 {
		return nil, inventory.Problems{{File: name, Line: 1, Message: "it is empty"}}
	}
	return nil, inventory.Problems{{File: name, Line: 1, Message: "it is neither what kubectl get " +
		"-o json or -o yaml prints, nor a fleet with hosts: and vms:, nor the text format of " +
		"Ganeti's htools, nor what openstack ... list --long -f json prints, nor a folder with " +
		"the XML of libvirt's domains"}}
}

// kubevirtWords are field names at the top of a document.
type kubevirtWords []string

// Which fields tell the two formats apart.
var (
	kubectl = kubevirtWords{"apiVersion", "kind", "items"}
	own     = kubevirtWords{"hosts", "vms", "policies", "config", "evictionStrategy", "namespaces",
		"defaults", "aggregates", "groups"}
)

// in returns where the first line begins that sets one of the words, or len(start)
// when there is none.
func (w kubevirtWords) in(start []byte) int {
	at := 0
	for line := range bytes.Lines(start) {
		if bytes.HasPrefix(line, []byte{' '}) && !looksLikeJSON(start) {
			at += len(line)
			continue
		}
		text := strings.TrimLeft(string(line), " \t{\"\ufeff")
		for _, word := range w {
			after, found := strings.CutPrefix(text, word)
			if found && strings.HasPrefix(strings.TrimPrefix(after, `"`), ":") {
				return at
			}
		}
		at += len(line)
	}
	return len(start)
}

// errEnough ends the reading when further problems would only be counted.
var errEnough = errors.New("enough")

func looksLikeJSON(start []byte) bool {
	start = bytes.TrimLeftFunc(start, unicode.IsSpace)
	return len(start) > 0 && start[0] == '{'
}
