package hypervisor_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-vm/godwit/hypervisor"
)

// TestWords lists the name of every value. Traces, stored records and error
// texts contain them, so that a change of one is a change of an interface.
func TestWords(t *testing.T) {
	tests := []struct {
		name string
		word func(uint8) string
		want []string
	}{
		{"states of a domain",
			func(n uint8) string { return hypervisor.DomainState(n).String() },
			[]string{"Absent", "Shutoff", "Starting", "Running", "Paused", "Stopping",
				"Rebooting", "Receiving", "Received", "HandingOver", "HandedOver", "Crashed"}},
		{"modes of a transfer, in KubeVirt's words",
			func(n uint8) string { return hypervisor.Mode(n).String() },
			[]string{"PreCopy", "Paused", "PostCopy"}},
		{"statuses of a job",
			func(n uint8) string { return hypervisor.JobStatus(n).String() },
			[]string{"None", "Setup", "Active", "Switching", "Succeeded", "Failed", "Cancelled",
				"Broken"}},
		{"proofs",
			func(n uint8) string { return hypervisor.Proof(n).String() },
			[]string{"NoProof", "TargetDiscarded", "ProcessReaped", "HostFenced", "LeaseExpired",
				"OperatorWord", "SourceStopped", "RunsAtTarget"}},
		{"kinds of errors",
			func(n uint8) string { return hypervisor.Kind(n).Error() },
			[]string{"unknown outcome", "not found", "unsupported", "conflict", "transient",
				"invalid", "no room"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := make([]string, len(tt.want))
			count := map[string]int{}
			for n := range got {
				got[n] = tt.word(uint8(n))
				count[got[n]]++
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for word, n := range count {
				if n > 1 {
					t.Errorf("%q stands for %d values", word, n)
				}
			}
			for n := len(got); n <= 255; n++ {
				if word := tt.word(uint8(n)); word != "invalid" {
					t.Errorf("%d, which is out of range, is %q", n, word)
				}
			}
		})
	}
}

// TestTheLastValueHasTheLastWord: a constant that is added without a word would
// be "invalid" in every trace.
func TestTheLastValueHasTheLastWord(t *testing.T) {
	for last, want := range map[interface{ String() string }]string{
		hypervisor.Crashed: "Crashed", hypervisor.PostCopy: "PostCopy",
		hypervisor.JobBroken: "Broken", hypervisor.RunsAtTarget: "RunsAtTarget",
	} {
		if got := last.String(); got != want {
			t.Errorf("%T %d is %q, want %q", last, last, got, want)
		}
	}
	if got := hypervisor.NoRoom.Error(); got != "no room" {
		t.Errorf("NoRoom is %q", got)
	}
}

func TestWhatDomainsDo(t *testing.T) {
	tests := []struct {
		name            string
		state           hypervisor.DomainState
		executes, holds bool
	}{
		{"what is not there has nothing", hypervisor.Absent, false, false},
		{"what is shut off has no memory", hypervisor.Shutoff, false, false},
		{"what starts may run at any moment", hypervisor.Starting, true, true},
		{"what runs, runs", hypervisor.Running, true, true},
		{"what is paused keeps its memory", hypervisor.Paused, false, true},
		{"what was asked to shut down still runs", hypervisor.Stopping, true, true},
		{"what was asked to reboot still runs", hypervisor.Rebooting, true, true},
		{"what is being received is not complete", hypervisor.Receiving, false, false},
		{"what was received is complete", hypervisor.Received, false, true},
		{"what hands over is the last good copy", hypervisor.HandingOver, false, true},
		{"what was handed over is still good", hypervisor.HandedOver, false, true},
		{"what crashed has lost its memory", hypervisor.Crashed, false, false},
		{"what is not known is trusted in nothing", hypervisor.Crashed + 1, false, false},
	}
	for n, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if int(tt.state) != n {
				t.Fatalf("the table leaves out states: row %d is %s", n, tt.state)
			}
			if got := tt.state.Executes(); got != tt.executes {
				t.Errorf("%s executes: %t, want %t", tt.state, got, tt.executes)
			}
			if got := tt.state.HoldsState(); got != tt.holds {
				t.Errorf("%s holds the VM's state: %t, want %t", tt.state, got, tt.holds)
			}
		})
	}
}

func TestWhenJobsHaveEnded(t *testing.T) {
	final := map[hypervisor.JobStatus]bool{hypervisor.JobSucceeded: true,
		hypervisor.JobFailed: true, hypervisor.JobCancelled: true}
	for n := range 256 {
		if s := hypervisor.JobStatus(n); s.Final() != final[s] {
			t.Errorf("%s (%d) is final: %t, want %t", s, n, s.Final(), final[s])
		}
	}
}

func TestKindsAreErrors(t *testing.T) {
	for kind := hypervisor.Unknown; kind <= hypervisor.NoRoom; kind++ {
		for other := hypervisor.Unknown; other <= hypervisor.NoRoom; other++ {
			if got := errors.Is(kind, other); got != (kind == other) {
				t.Errorf("%v is %v: %t", kind, other, got)
			}
		}
	}
}

func TestWordsAreReadBackAsTheyWereStored(t *testing.T) {
	type stored struct {
		State  hypervisor.DomainState
		Status hypervisor.JobStatus
		Mode   hypervisor.Mode
	}
	want := stored{hypervisor.HandedOver, hypervisor.JobBroken, hypervisor.PostCopy}
	text, err := json.Marshal(want)
	if err != nil || string(text) != `{"State":"HandedOver","Status":"Broken","Mode":"PostCopy"}` {
		t.Fatalf("stored %s, %v", text, err)
	}
	var got stored
	if err := json.Unmarshal(text, &got); err != nil || got != want {
		t.Errorf("read %+v, %v; want %+v", got, err, want)
	}
	for _, bad := range []string{`{"State":"Gone"}`, `{"Status":""}`, `{"Mode":"PreCopy "}`} {
		if json.Unmarshal([]byte(bad), &got) == nil {
			t.Errorf("%s was read", bad)
		}
	}
}
