package store_test

import (
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/store"
)

func TestWhatAFencedHostProves(t *testing.T) {
	fenced := func(by, why string) *store.Host {
		return &store.Host{Host: hypervisor.Host{Name: "n1"}, Fenced: true,
			Fencing: &store.Fencing{By: by, Error: why}}
	}
	for _, test := range []struct {
		name string
		host *store.Host
		want hypervisor.Evidence
	}{
		{"a host that was not fenced proves nothing", &store.Host{NotReady: true,
			Fencing: &store.Fencing{By: "ipmi"}}, hypervisor.Evidence{}},
		{"one that was is dead", fenced("ipmi", ""),
			hypervisor.Evidence{Proof: hypervisor.HostFenced, Host: "n1", By: "ipmi"}},
		{"it is not known what did it", fenced("", ""),
			hypervisor.Evidence{Proof: hypervisor.HostFenced, Host: "n1", By: "fencing"}},
		{"an operator's word is one", fenced("operator al", ""),
			hypervisor.Evidence{Proof: hypervisor.OperatorWord, Host: "n1", By: "operator al"}},
		{"one that beats was not fenced", fenced("ipmi", "it lives"), hypervisor.Evidence{}},
		{"nor was the word true", fenced("operator al", "it lives"), hypervisor.Evidence{}},
	} {
		if got := test.host.Proof(); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
}

// TestAFailedAttemptRefutesNothing: the same text is why an attempt has failed, and why a host that
// counts as fenced is not off.
func TestAFailedAttemptRefutesNothing(t *testing.T) {
	for _, row := range []struct {
		host    store.Host
		refuted string
		proves  bool
	}{
		{host: store.Host{}},
		{host: store.Host{Fencing: &store.Fencing{Attempts: 1, Error: "no answer"}}},
		{host: store.Host{Fenced: true}, proves: true},
		{host: store.Host{Fenced: true, Fencing: &store.Fencing{By: "fence_ipmilan"}}, proves: true},
		{host: store.Host{Fenced: true, Fencing: &store.Fencing{Error: "it lives"}}, refuted: "it lives"},
	} {
		if got := row.host.Refuted(); got != row.refuted {
			t.Errorf("%+v: refuted by %q, want %q", row.host, got, row.refuted)
		}
		if got := row.host.Proof().Proof != hypervisor.NoProof; got != row.proves {
			t.Errorf("%+v: proves %v, want %v", row.host, got, row.proves)
		}
	}
}
