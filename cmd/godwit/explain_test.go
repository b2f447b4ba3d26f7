package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/inventory"
	"github.com/godwit-vm/godwit/migration/placement"
)

// TestNoLineIsTooLong: whatever the words, a page keeps within its columns, loses no
// letter, and has nothing that a terminal acts on.
func TestNoLineIsTooLong(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOf(rapid.StringMatching(`[a-zäé\x1b]{1,130}`)).
			Draw(t, "words"), " ")
		p := &page{}
		p.line(rapid.IntRange(0, 30).Draw(t, "indent"), "%s", text)
		for line := range strings.Lines(p.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > columns {
				t.Errorf("a line has %d columns: %q", n, line)
			}
		}
		letters := func(s string) string {
			return strings.Map(func(c rune) rune {
				if unicode.IsSpace(c) {
					return -1
				}
				return c
			}, s)
		}
		want := strings.ReplaceAll(letters(text), "\x1b", "\ufffd")
		if got := letters(p.String()); got != want {
			t.Errorf("the page says %q, want %q", got, want)
		}
	})
}

// TestVerdictsAreOrdered: the target, then by score, then by the number of reasons,
// then by name.
func TestVerdictsAreOrdered(t *testing.T) {
	why := []placement.Reason{{Check: "zone"}, {Check: "disk"}}
	e := placement.Explanation{
		Decision: placement.Decision{Outcome: placement.Accepted, Host: "f"},
		Hosts: []placement.HostResult{{Host: "a", Why: why}, {Host: "b", Score: 1},
			{Host: "c", Why: why[:1]}, {Host: "d", Score: 2}, {Host: "e", Why: why[:1]},
			{Host: "f", Score: 2}, {Host: "g", Score: -1}},
	}
	inquiry := inventory.Inquiry{Request: placement.Request{VM: &placement.VM{ID: "default/a"}}}
	x := explained(&inquiry, e)
	var got []string
	for _, h := range x.Hosts {
		got = append(got, string(h.Host)+" "+h.Verdict)
	}
	want := []string{"f chosen", "d fits", "b fits", "g fits", "c refuses", "e refuses",
		"a refuses"}
	if !slices.Equal(got, want) {
		t.Errorf("hosts %v, want %v", got, want)
	}
	e.Decision = placement.Decision{Outcome: placement.NoHost, Host: ""}
	if first := explained(&inquiry, e).Hosts[0]; first.Verdict != isFitting || first.Host != "d" {
		t.Errorf("without a target the first is %+v", first)
	}
}

func TestTheTableNamesTheFirstHosts(t *testing.T) {
	x := &explanation{VM: "default/a", Outcome: placement.NoHost}
	for n := range mostHosts + 3 {
		x.Hosts = append(x.Hosts, hostVerdict{Verdict: isRefused,
			Host: hypervisor.HostName(fmt.Sprintf("n%02d", n))})
	}
	var out bytes.Buffer
	if err := x.table(&out, &placement.VM{}); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	if !strings.Contains(text, "n39 ") || strings.Contains(text, "n40 ") ||
		!strings.Contains(text, "… and 3 more; --json lists them all\n") {
		t.Errorf("the table is\n%s", text)
	}
	if status := exitStatus(errors.Join(nil, x.verdict())); status != exitNoTarget {
		t.Errorf("exit status %d, want %d", status, exitNoTarget)
	}
}
